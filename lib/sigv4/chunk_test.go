package sigv4

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	crc32Trailer = "x-amz-checksum-crc32:AAAAAA=="
	zeros        = "0000000000000000000000000000000000000000000000000000000000000000"
)

func replace(old, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, to, 1) }
}

func TestChunkedBodiesAreDecoded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(random.IntN(256))
	}
	for _, signed := range []bool{true, false} {
		for _, trailer := range []string{"", crc32Trailer} {
			for _, length := range []int{0, 1, 65536, 65537, len(data)} {
				for _, size := range []int{1000, 65536, 1 << 20} {
					name := fmt.Sprintf("signed %t, trailer %q, %d bytes in chunks of %d", signed, trailer, length, size)
					t.Run(name, func(t *testing.T) {
						body := chunked{data: string(data[:length]), size: size, trailer: trailer}
						verified, err := exampleVerifier().Verify(newClient().upload(t, body, signed, nil), exampleTime)
						require.NoError(t, err)
						assert.Equal(t, int64(length), verified.Body.Length())
						got, err := io.ReadAll(verified.Body)
						require.NoError(t, err)
						require.True(t, bytes.Equal(data[:length], got))
						require.NoError(t, verified.Body.Err())
						name, value := verified.Body.Trailer()
						assert.Equal(t, trailer, strings.TrimSuffix(name+":"+value, ":"))
						n, err := verified.Body.Read(make([]byte, 1))
						assert.Zero(t, n)
						require.ErrorIs(t, err, io.EOF, "the end stays the end")
					})
				}
			}
		}
	}
}

func TestChunkedBodiesOfOtherClients(t *testing.T) {
	const sum = "x-amz-checksum-crc32:AAAAAA==\r\n"
	cases := map[string]struct {
		signed bool
		change func(string) string
		reason string
	}{
		"empty line after the trailer":         {true, replace(sum, "x-amz-checksum-crc32:AAAAAA==\n\r\n"), "as the documentation writes it"},
		"empty line after the trailer, plain":  {false, replace(sum, "x-amz-checksum-crc32:AAAAAA==\n\r\n"), "as minio-go writes it"},
		"empty line before the trailer":        {true, replace(sum, "\r\n"+sum), "as a chunk of its own"},
		"no line break at the end":             {false, func(s string) string { return strings.TrimSuffix(s, "\r\n") }, "nothing is missing"},
		"upper-case trailer":                   {false, replace("x-amz-checksum-crc32:", "X-Amz-Checksum-CRC32: "), "names have no case"},
		"leading zeros in a size":              {false, replace("400\r\n", "00000400\r\n"), "a number"},
		"upper-case size, one chunk":           {false, func(s string) string { return s }, "a number"},
		"line breaks at the end, one too many": {false, func(s string) string { return s + "\r\n" }, "nothing hides in a line break"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := chunked{data: strings.Repeat("x", 1024+10), size: 1024, trailer: crc32Trailer}
			verified, err := exampleVerifier().Verify(newClient().upload(t, body, c.signed, c.change), exampleTime)
			require.NoError(t, err)
			got, err := io.ReadAll(iotest.OneByteReader(verified.Body))
			require.NoError(t, err, c.reason)
			assert.Equal(t, body.data, string(got))
		})
	}
}

// Whatever is wrong with a body, its last bytes never come out, so that nothing complete is ever stored.
func TestSpoiledChunksStayInside(t *testing.T) {
	cut := func(n int) func(string) string { return func(s string) string { return s[:len(s)-n] } }
	flipLast := func(marker string) func(string) string {
		return func(s string) string {
			i := strings.LastIndex(s, marker) + len(marker)
			c := byte('0')
			if s[i] == '0' {
				c = '1'
			}
			return s[:i] + string(c) + s[i+1:]
		}
	}
	cases := map[string]struct {
		signed  bool
		trailer string
		change  func(string) string
		want    access.Error
		most    int // bytes that may come out
		reason  string
	}{
		"first chunk changed":        {true, "", replace("xxx", "xyx"), access.ErrSignature, 0, "not what was signed"},
		"last chunk changed":         {true, "", func(s string) string { i := strings.LastIndex(s, "x"); return s[:i] + "y" + s[i+1:] }, access.ErrSignature, 2000, "not what was signed"},
		"first signature changed":    {true, "", replace(signatureIn, signatureIn+"0"), access.ErrSignature, 0, "not a signature"},
		"no signature":               {true, "", func(s string) string { i := strings.Index(s, ";"); return s[:i] + s[i+len(signatureIn)+64:] }, errChunk, 0, "unsigned chunk in a signed body"},
		"empty signature":            {true, "", func(s string) string { i := strings.Index(s, ";") + len(signatureIn); return s[:i] + s[i+64:] }, access.ErrSignature, 0, "unsigned chunk in a signed body"},
		"chunks swapped":             {true, "", swapChunks, access.ErrSignature, 0, "each signature covers the one before"},
		"chunk left out":             {true, "", dropSecondChunk, access.ErrSignature, 1000, "each signature covers the one before"},
		"last signature changed":     {true, "", flipLast(signatureIn), access.ErrSignature, 2000, "the end is signed, too"},
		"no last chunk":              {true, "", func(s string) string { return s[:strings.LastIndex(s, "0;")] }, access.ErrIncompleteBody, 2000, "cut off"},
		"last chunk cut":             {true, "", cut(10), access.ErrIncompleteBody, 2000, "cut off"},
		"data behind the end":        {true, "", func(s string) string { return s + "more" }, errChunk, 2000, "what is it?"},
		"early end":                  {true, "", func(s string) string { return s[strings.LastIndex(s, "0;"):] }, access.ErrIncompleteBody, 0, "fewer bytes than announced"},
		"trailer changed":            {true, crc32Trailer, replace("AAAAAA==", "AAAAAQ=="), access.ErrSignature, 2000, "not what was signed"},
		"trailer signature changed":  {true, crc32Trailer, flipLast(trailerSign + ":"), access.ErrSignature, 2000, "not a signature"},
		"trailer signature missing":  {true, crc32Trailer, cutBefore(trailerSign), access.ErrIncompleteBody, 2000, "unsigned trailer"},
		"trailer missing":            {true, crc32Trailer, cutBefore(crc32Trailer), access.ErrIncompleteBody, 2000, "it was announced"},
		"another trailer":            {true, crc32Trailer, replace("crc32:", "crc32c:"), access.ErrMalformedTrailer, 2000, "not the announced one"},
		"trailer without value":      {false, crc32Trailer, replace("AAAAAA==", ""), access.ErrMalformedTrailer, 2999, "not a checksum"},
		"trailer of wrong size":      {false, crc32Trailer, replace("AAAAAA==", "AAAAAAAA"), access.ErrMalformedTrailer, 2999, "not a crc32"},
		"trailer not base64":         {false, crc32Trailer, replace("AAAAAA==", "!!!!!!=="), access.ErrMalformedTrailer, 2999, "not a checksum"},
		"trailer without colon":      {false, crc32Trailer, replace("crc32:", "crc32 "), access.ErrMalformedTrailer, 2999, "not a header"},
		"plain trailer missing":      {false, crc32Trailer, replace(crc32Trailer+"\r\n", ""), access.ErrIncompleteBody, 2999, "it was announced"},
		"second trailer":             {false, crc32Trailer, replace(crc32Trailer, crc32Trailer+"\r\nx-amz-meta-a:b"), errChunk, 2999, "not announced"},
		"unannounced trailer":        {false, "", replace("0\r\n\r\n", "0\r\n"+crc32Trailer+"\r\n\r\n"), errChunk, 2999, "not announced"},
		"plain, more than announced": {false, "", replace("0\r\n\r\n", "1\r\nx\r\n0\r\n\r\n"), access.ErrIncompleteBody, 2999, "announced length is a promise"},
		"plain, first chunk larger":  {false, "", replace("3e8\r\n", "ffffff\r\n"), access.ErrIncompleteBody, 0, "announced length is a promise"},
		"plain, fewer":               {false, "", func(s string) string { return s[strings.LastIndex(s, "0\r\n\r\n"):] }, access.ErrIncompleteBody, 0, "announced length is a promise"},
		"plain, cut":                 {false, "", cut(10), access.ErrIncompleteBody, 2999, "cut off"},
		"plain, no end":              {false, "", cut(5), access.ErrIncompleteBody, 2999, "cut off"},
		"plain, signed chunk":        {false, "", replace("3e8\r\n", "3e8;chunk-signature="+zeros+"\r\n"), errChunk, 0, "what is it?"},
		"plain, extension":           {false, "", replace("3e8\r\n", "3e8;a=b\r\n"), errChunk, 0, "what is it?"},
		"size missing":               {false, "", replace("3e8\r\n", "\r\n"), errChunk, 0, "no number"},
		"size negative":              {false, "", replace("3e8\r\n", "-3e8\r\n"), errChunk, 0, "no number"},
		"size signed":                {false, "", replace("3e8\r\n", "+3e8\r\n"), errChunk, 0, "no number"},
		"size with 0x":               {false, "", replace("3e8\r\n", "0x3e8\r\n"), errChunk, 0, "no number"},
		"size overflows":             {false, "", replace("3e8\r\n", "fffffffffffffffff\r\n"), errChunk, 0, "no number"},
		"size of zeros":              {false, "", replace("3e8\r\n", strings.Repeat("0", 2000)+"3e8\r\n"), errChunk, 0, "endless line"},
		"no line break after data":   {false, "", replace("x\r\n3e8", "xx\r\n3e8"), errChunk, 999, "chunk longer than it says"},
		"empty body":                 {false, "", func(string) string { return "" }, access.ErrIncompleteBody, 0, "nothing came"},
		"huge signed chunk":          {true, "", replace("3e8;", "3e80000;"), access.ErrIncompleteBody, 0, "more than announced"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := chunked{data: strings.Repeat("x", 3000), size: 1000, trailer: c.trailer}
			verified, err := exampleVerifier().Verify(newClient().upload(t, body, c.signed, c.change), exampleTime)
			require.NoError(t, err, "the head is fine")
			for range 2 {
				got, err := io.ReadAll(verified.Body)
				require.Error(t, err, c.reason)
				require.ErrorIs(t, err, c.want, c.reason)
				assert.LessOrEqual(t, len(got), c.most, c.reason)
			}
			require.ErrorIs(t, verified.Body.Err(), c.want, "what the transport hides is kept")
			if c.want == access.ErrSignature {
				_, value := verified.Body.Trailer()
				assert.Empty(t, value, "a trailer that is not proven is not told")
			}
		})
	}
}

// cutBefore ends a body where the marker begins.
func cutBefore(marker string) func(string) string {
	return func(s string) string {
		before, _, _ := strings.Cut(s, marker)
		return before + "\r\n"
	}
}

// chunkEnds finds where the chunks of 1000 bytes end.
func chunkEnds(s string) []int {
	var ends []int
	for at := 0; ; {
		i := strings.Index(s[at:], "x\r\n")
		if i < 0 {
			return ends
		}
		at += i + 3
		ends = append(ends, at)
	}
}

func swapChunks(s string) string {
	e := chunkEnds(s)
	return s[e[0]:e[1]] + s[:e[0]] + s[e[1]:]
}

func dropSecondChunk(s string) string {
	e := chunkEnds(s)
	return s[:e[0]] + s[e[1]:]
}

func TestSignedChunksAreBounded(t *testing.T) {
	reader := newChunkReader(strings.NewReader("1000001"+signatureIn+zeros+"\r\n"), 1<<40, "")
	reader.chain = &chain{}
	_, err := reader.Read(make([]byte, 1))
	require.ErrorIs(t, err, access.ErrInvalidRequest, "a chunk is kept in memory until it is verified")

	// A large announcement alone costs nothing.
	reader = newChunkReader(strings.NewReader("1000000"+signatureIn+zeros+"\r\nfew bytes"), 1<<40, "")
	reader.chain = &chain{}
	_, err = reader.Read(make([]byte, 1))
	require.ErrorIs(t, err, access.ErrIncompleteBody)
}

func TestBrokenConnectionIsNotTheClientsFault(t *testing.T) {
	broken := errors.New("connection reset")
	for _, signed := range []bool{true, false} {
		text := "3e8" + map[bool]string{true: signatureIn + zeros}[signed] + "\r\nxxx"
		reader := newChunkReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), 1000, "")
		if signed {
			reader.chain = &chain{}
		}
		_, err := io.ReadAll(reader)
		require.ErrorIs(t, err, broken)
	}
}

func TestPlainBodyThatEndsEarly(t *testing.T) {
	r := newClient().sign(t, "PUT", "https://s3.amazonaws.com/examplebucket/key", unsignedPayload, []byte("1234"))
	r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) // as net/http's server tells it
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	_, err = io.ReadAll(verified.Body)
	require.ErrorIs(t, err, access.ErrIncompleteBody)
	require.ErrorIs(t, verified.Body.Err(), access.ErrIncompleteBody)
}

// repeated is a body of one chunk over and over, made while it is read.
type repeated struct {
	chunk func() string
	count int
	rest  string
}

// Read ends with the last chunk.
func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		switch r.count--; {
		case r.count < -1:
			return 0, io.EOF
		case r.count < 0:
			r.rest = chunked{}.String()
		default:
			r.rest = r.chunk()
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestStreamsTakeNoMemory(t *testing.T) {
	const size, count = 64 << 10, 2000 // 125 MiB
	chunk := fmt.Sprintf("%x\r\n%s\r\n", size, strings.Repeat("x", size))
	body := &Body{length: size * count, trailer: ""}
	body.chunks = newChunkReader(&repeated{chunk: func() string { return chunk }, count: count}, size*count, "")
	body.reader = body.chunks
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, struct{ io.Reader }{body})
	require.NoError(t, err)
	require.Equal(t, body.length, n)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), "bytes allocated for 125 MiB")
}

func BenchmarkSignedChunks(b *testing.B) {
	data := strings.Repeat("x", 1<<20)
	fresh := func() *chain { return &chain{key: []byte("key"), prefix: "p", previous: zeros} }
	text := chunked{data: data, size: 64 << 10, chain: fresh()}.String()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		reader := newChunkReader(strings.NewReader(text), int64(len(data)), "")
		reader.chain = fresh()
		if _, err := io.Copy(io.Discard, struct{ io.Reader }{reader}); err != nil {
			b.Fatal(err)
		}
	}
}
