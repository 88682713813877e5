package sigv4

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	unsignedPayload       = "UNSIGNED-PAYLOAD"
	signedChunks          = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedChunksTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	unsignedChunksTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

	// maxObject is S3's limit of an object, in bytes; it also keeps sums of lengths from overflowing.
	maxObject = 5 << 40

	headerDecodedLength = "X-Amz-Decoded-Content-Length"
	headerTrailer       = "X-Amz-Trailer"
	headerEncoding      = "Content-Encoding"
	chunkedEncoding     = "aws-chunked"
)

// parsePayload reads an x-amz-content-sha256.
func parsePayload(hash string) (Payload, error) {
	switch hash {
	case unsignedPayload:
		return PayloadUnsigned, nil
	case signedChunks:
		return PayloadSigned, nil
	case signedChunksTrailer:
		return PayloadSignedTrailer, nil
	case unsignedChunksTrailer:
		return PayloadUnsignedTrailer, nil
	}
	if len(hash) == signatureLength && isHex(hash) {
		return PayloadHashed, nil
	}
	return 0, access.ErrInvalidArgument.With("x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-UNSIGNED-PAYLOAD-TRAILER or a valid sha256 value.")
}

func (p Payload) chunked() bool {
	return p == PayloadSigned || p == PayloadSignedTrailer || p == PayloadUnsignedTrailer
}

func (p Payload) signedChunks() bool { return p == PayloadSigned || p == PayloadSignedTrailer }

// verified makes the request that goes on of one whose signature is proven.
func (in *incoming) verified(form Form, proof proof, hash string) (*Verified, error) {
	payload, err := parsePayload(hash)
	if err != nil {
		return nil, err
	}
	header := in.Header.Clone()
	query := in.values()
	if form == FormPresigned {
		if query, err = hoist(in.query, header); err != nil {
			return nil, err
		}
	}
	token, err := single(header, headerToken)
	if err != nil {
		return nil, err
	}
	body, err := newBody(in.Request, header, payload, proof)
	if err != nil {
		return nil, err
	}
	if payload.chunked() {
		stripChunked(header)
	}
	for _, name := range []string{headerAuthorization, headerDate, headerSHA256, headerToken, headerDecodedLength, headerTrailer} {
		header.Del(name)
	}
	return &Verified{
		Identity: Identity{AccessKeyID: proof.auth.keyID, SessionToken: token, Form: form, Payload: payload},
		Method:   in.Method, Bucket: in.bucket, Key: in.key, Query: query, Header: header, Body: body, payloadHash: hash,
	}, nil
}

func (in *incoming) values() url.Values {
	values := url.Values{}
	for _, q := range in.query {
		values[q.name] = append(values[q.name], q.value)
	}
	return values
}

// newBody makes the reader of the body that the head announces.
func newBody(r *http.Request, header http.Header, payload Payload, proof proof) (*Body, error) {
	trailer, err := announced(header, payload)
	if err != nil {
		return nil, err
	}
	if !payload.chunked() {
		if r.ContentLength < 0 {
			return nil, access.ErrMissingLength
		}
		return &Body{length: r.ContentLength, source: r.Body, reader: r.Body}, nil
	}
	length, err := decodedLength(header)
	if err != nil {
		return nil, err
	}
	chunks := newChunkReader(r.Body, length, trailer)
	if payload.signedChunks() {
		chunks.chain = newChain(proof)
	}
	return &Body{length: length, source: r.Body, reader: chunks, chunks: chunks, trailer: trailer}, nil
}

func decodedLength(header http.Header) (int64, error) {
	value, err := single(header, headerDecodedLength)
	if err != nil {
		return 0, err
	}
	if value == "" {
		return 0, access.ErrMissingLength.With("You must provide the x-amz-decoded-content-length HTTP header.")
	}
	length, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		return 0, access.ErrInvalidArgument.With("x-amz-decoded-content-length must be a number of bytes.")
	}
	if length > maxObject {
		return 0, access.ErrTooLarge
	}
	return int64(length), nil
}

// checksumSizes is the trailers that Garage takes, with the bytes of their values before base64.
func checksumSize(name string) (int, bool) {
	switch name {
	case "x-amz-checksum-crc32", "x-amz-checksum-crc32c":
		return 4, true
	case "x-amz-checksum-crc64nvme":
		return 8, true
	case "x-amz-checksum-sha1":
		return 20, true
	case "x-amz-checksum-sha256":
		return 32, true
	}
	return 0, false
}

// announced is the name of the one trailer that x-amz-trailer announces, "" for none.
func announced(header http.Header, payload Payload) (string, error) {
	value, err := single(header, headerTrailer)
	if err != nil {
		return "", err
	}
	name := strings.ToLower(strings.TrimSpace(value))
	switch {
	case name == "" && payload == PayloadSignedTrailer:
		return "", access.ErrInvalidRequest.With("x-amz-trailer must name the trailing checksum.")
	case name == "":
		return "", nil
	case payload != PayloadSignedTrailer && payload != PayloadUnsignedTrailer:
		return "", access.ErrInvalidRequest.With("x-amz-trailer needs a payload with trailers.")
	}
	if _, known := checksumSize(name); !known {
		return "", access.ErrInvalidRequest.With("The value specified in the x-amz-trailer header is not supported")
	}
	return name, nil
}

// stripChunked takes aws-chunked, which is undone, out of the encodings, which stay with the object.
func stripChunked(header http.Header) {
	var kept []string
	for _, value := range header.Values(headerEncoding) {
		for encoding := range strings.SplitSeq(value, ",") {
			encoding = strings.TrimSpace(encoding)
			if encoding != "" && !strings.EqualFold(encoding, chunkedEncoding) {
				kept = append(kept, encoding)
			}
		}
	}
	header.Del(headerEncoding)
	if kept = slices.Compact(kept); len(kept) > 0 {
		header.Set(headerEncoding, strings.Join(kept, ","))
	}
}
