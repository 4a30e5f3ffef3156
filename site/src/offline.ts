// The service worker: after the first visit everything comes from the browser's own store.
export {};
declare const FILES: string[];
declare const VERSION: string;

const worker = self as unknown as ServiceWorkerGlobalScope;
const STORE = `simnel-${VERSION}`;

async function keep(): Promise<void> {
    const store = await caches.open(STORE);
    await store.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
    await worker.skipWaiting();
}

async function clear(): Promise<void> {
    const old = (await caches.keys()).filter((name) => name.startsWith("simnel-") && name !== STORE);
    await Promise.all(old.map((name) => caches.delete(name)));
    await worker.clients.claim();
}

async function answer(request: Request): Promise<Response> {
    const store = await caches.open(STORE);
    return (await store.match(request, { ignoreSearch: true })) ?? fetch(request);
}

worker.addEventListener("install", (event) => event.waitUntil(keep()));
worker.addEventListener("activate", (event) => event.waitUntil(clear()));
worker.addEventListener("fetch", (event) => {
    const isOurs = new URL(event.request.url).origin === worker.location.origin;
    if (event.request.method === "GET" && isOurs) event.respondWith(answer(event.request));
});
