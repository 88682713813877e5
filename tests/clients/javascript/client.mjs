// The consumer of the client matrix that is written in JavaScript: the AWS SDK v3 on its default configuration.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CopyObjectCommand, DeleteObjectsCommand, GetObjectCommand, PutObjectCommand, S3Client, paginateListObjectsV2,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const [prefix, ...numbers] = process.argv.slice(2);
const [large, listed, many, past] = numbers.map(Number);
const Bucket = process.env.BUCKET_NAME;
const s3 = new S3Client({});
// Else the SDK signs the checksum of an empty body into the URL of a PUT, and AWS, too, refuses any other body there.
const signer = new S3Client({ requestChecksumCalculation: "WHEN_REQUIRED" });
const small = randomBytes(1000);

const put = (key, Body) => s3.send(new PutObjectCommand({ Bucket, Key: prefix + key, Body }));

async function get(key, more = {}) {
  const answer = await s3.send(new GetObjectCommand({ Bucket, Key: prefix + key, ...more }));
  return Buffer.from(await answer.Body.transformToByteArray());
}

async function keys(Prefix) {
  const found = [];
  for await (const page of paginateListObjectsV2({ client: s3 }, { Bucket, Prefix })) {
    found.push(...(page.Contents ?? []).map((o) => o.Key));
  }
  return found;
}

function same(want, got) {
  if (!want.equals(got)) throw new Error("other content");
}

function count(got, want) {
  if (got.length !== want) throw new Error(`${got.length} objects, want ${want}`);
}

async function fetched(url, options) {
  const answer = await fetch(url, options);
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return Buffer.from(await answer.arrayBuffer());
}

const operations = {
  put: () => put("small", small),
  get: async () => same(small, await get("small")),
  range: async () => same(small.subarray(100, 300), await get("small", { Range: "bytes=100-299" })),
  multipart: async () => {
    const content = randomBytes(large);
    await new Upload({ client: s3, params: { Bucket, Key: prefix + "large", Body: content } }).done();
    same(content, await get("large"));
  },
  copy: async () => {
    await s3.send(new CopyObjectCommand({ Bucket, Key: prefix + "copy", CopySource: `${Bucket}/${prefix}small` }));
    same(small, await get("copy"));
  },
  list: async () => count(await keys("list/"), listed),
  delete: async () => {
    const found = await keys(prefix + "many/");
    count(found, many);
    for (let i = 0; i < found.length; i += 1000) {
      const Objects = found.slice(i, i + 1000).map((Key) => ({ Key }));
      const answer = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
      count(answer.Errors ?? [], 0);
    }
    count(await keys(prefix + "many/"), 0);
  },
  "presign-get": async () => {
    const url = await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: prefix + "small" }), { expiresIn: 60 });
    same(small, await fetched(url));
  },
  "presign-put": async () => {
    const url = await getSignedUrl(signer, new PutObjectCommand({ Bucket, Key: prefix + "signed" }), { expiresIn: 60 });
    await fetched(url, { method: "PUT", body: small });
    same(small, await get("signed"));
  },
  "past-expiry": async () => {
    for (const end = Date.now() + past * 1000; Date.now() < end; await sleep(500)) {
      const content = randomBytes(1000);
      await put("living", content);
      same(content, await get("living"));
    }
  },
};

for (const [name, operation] of Object.entries(operations)) {
  const started = performance.now();
  try {
    await operation();
    console.log([name, "ok", `${((performance.now() - started) / 1000).toFixed(3)}s`].join("\t"));
  } catch (error) {
    console.log([name, "failed", `${error.name}: ${error.message}`.replace(/\s+/g, " ")].join("\t"));
  }
}
