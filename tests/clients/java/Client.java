import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.S3Object;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/** The consumer of the client matrix that is written in Java: the AWS SDK for Java 2 on its default configuration. */
public final class Client {
    private static final int PART = 8 << 20;
    private static final int BATCH = 1000;

    private final S3Client s3 = S3Client.create();
    private final S3Presigner presigner = S3Presigner.create();
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Random random = new Random();
    private final String bucket = System.getenv("BUCKET_NAME");
    private final byte[] small = content(1000);
    private final String prefix;
    private final int large;
    private final int listed;
    private final int many;
    private final int past;

    private interface Operation {
        void run() throws Exception;
    }

    private Client(String[] words) {
        prefix = words[0];
        large = Integer.parseInt(words[1]);
        listed = Integer.parseInt(words[2]);
        many = Integer.parseInt(words[3]);
        past = Integer.parseInt(words[4]);
    }

    public static void main(String[] words) {
        new Client(words).operations().forEach(Client::tell);
    }

    private Map<String, Operation> operations() {
        Map<String, Operation> all = new LinkedHashMap<>();
        all.put("put", () -> put("small", small));
        all.put("get", () -> same(small, get("small")));
        all.put("range", this::range);
        all.put("multipart", this::multipart);
        all.put("copy", this::copy);
        all.put("list", () -> count(keys("list/"), listed));
        all.put("delete", this::delete);
        all.put("presign-get", this::presignGet);
        all.put("presign-put", this::presignPut);
        all.put("past-expiry", this::pastExpiry);
        return all;
    }

    private static void tell(String name, Operation operation) {
        long started = System.nanoTime();
        String verdict = "ok";
        String text;
        try {
            operation.run();
            text = Duration.ofNanos(System.nanoTime() - started).toMillis() + "ms";
        } catch (Exception error) { // whatever it is, it is what the matrix tells
            verdict = "failed";
            text = error.toString().replaceAll("\\s+", " ");
        }
        System.out.println(name + "\t" + verdict + "\t" + text);
    }

    private byte[] content(int size) {
        byte[] content = new byte[size];
        random.nextBytes(content);
        return content;
    }

    private void put(String key, byte[] body) {
        s3.putObject(b -> b.bucket(bucket).key(prefix + key), RequestBody.fromBytes(body));
    }

    private byte[] get(String key) {
        return s3.getObjectAsBytes(b -> b.bucket(bucket).key(prefix + key)).asByteArray();
    }

    private static void same(byte[] want, byte[] got) {
        if (!Arrays.equals(want, got)) {
            throw new IllegalStateException("other content");
        }
    }

    private static void count(List<String> got, int want) {
        if (got.size() != want) {
            throw new IllegalStateException(got.size() + " objects, want " + want);
        }
    }

    private List<String> keys(String below) {
        return s3.listObjectsV2Paginator(b -> b.bucket(bucket).prefix(below)).contents().stream().map(S3Object::key).toList();
    }

    private void range() {
        byte[] got = s3.getObjectAsBytes(b -> b.bucket(bucket).key(prefix + "small").range("bytes=100-299")).asByteArray();
        same(Arrays.copyOfRange(small, 100, 300), got);
    }

    private void multipart() {
        byte[] whole = content(large);
        String key = prefix + "large";
        String upload = s3.createMultipartUpload(b -> b.bucket(bucket).key(key)).uploadId();
        List<CompletedPart> parts = new ArrayList<>();
        for (int offset = 0; offset < large; offset += PART) {
            int number = parts.size() + 1;
            int size = Math.min(PART, large - offset);
            RequestBody body = RequestBody.fromInputStream(new ByteArrayInputStream(whole, offset, size), size);
            String tag = s3.uploadPart(b -> b.bucket(bucket).key(key).uploadId(upload).partNumber(number), body).eTag();
            parts.add(CompletedPart.builder().partNumber(number).eTag(tag).build());
        }
        s3.completeMultipartUpload(b -> b.bucket(bucket).key(key).uploadId(upload).multipartUpload(m -> m.parts(parts)));
        same(whole, get("large"));
    }

    private void copy() {
        s3.copyObject(b -> b.sourceBucket(bucket).sourceKey(prefix + "small").destinationBucket(bucket).destinationKey(prefix + "copy"));
        same(small, get("copy"));
    }

    private void delete() {
        List<String> found = keys(prefix + "many/");
        count(found, many);
        for (int i = 0; i < found.size(); i += BATCH) {
            List<ObjectIdentifier> batch = found.subList(i, Math.min(i + BATCH, found.size())).stream()
                    .map(key -> ObjectIdentifier.builder().key(key).build()).toList();
            var answer = s3.deleteObjects(b -> b.bucket(bucket).delete(d -> d.objects(batch)));
            if (answer.hasErrors()) {
                throw new IllegalStateException(answer.errors().toString());
            }
        }
        count(keys(prefix + "many/"), 0);
    }

    private void presignGet() throws Exception {
        GetObjectRequest request = GetObjectRequest.builder().bucket(bucket).key(prefix + "small").build();
        URL url = presigner.presignGetObject(b -> b.signatureDuration(Duration.ofMinutes(1)).getObjectRequest(request)).url();
        same(small, use(HttpRequest.newBuilder(url.toURI()).GET()));
    }

    private void presignPut() throws Exception {
        URI url = presigner.presignPutObject(b -> b.signatureDuration(Duration.ofMinutes(1))
                .putObjectRequest(p -> p.bucket(bucket).key(prefix + "signed"))).url().toURI();
        use(HttpRequest.newBuilder(url).PUT(HttpRequest.BodyPublishers.ofByteArray(small)));
        same(small, get("signed"));
    }

    private byte[] use(HttpRequest.Builder request) throws Exception {
        HttpResponse<byte[]> answer = http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        if (answer.statusCode() != 200) {
            throw new IllegalStateException(answer.statusCode() + " " + new String(answer.body()));
        }
        return answer.body();
    }

    private void pastExpiry() throws Exception {
        long started = System.nanoTime();
        while (System.nanoTime() - started < Duration.ofSeconds(past).toNanos()) {
            byte[] now = content(1000);
            put("living", now);
            same(now, get("living"));
            Thread.sleep(500);
        }
    }
}
