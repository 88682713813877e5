import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;

public class Hello {
    public static void main(String[] args) {
        String bucket = System.getenv("BUCKET_NAME");
        try (S3Client s3 = S3Client.create()) {
            s3.putObject(b -> b.bucket(bucket).key("hello/java"), RequestBody.fromString("hello from Java"));
            System.out.println(s3.getObjectAsBytes(b -> b.bucket(bucket).key("hello/java")).asUtf8String());
        }
    }
}
