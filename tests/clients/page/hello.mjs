import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";

const s3 = new S3Client({});
const object = { Bucket: process.env.BUCKET_NAME, Key: "hello/javascript" };
await s3.send(new PutObjectCommand({ ...object, Body: "hello from JavaScript" }));
const answer = await s3.send(new GetObjectCommand(object));
console.log(await answer.Body.transformToString());
