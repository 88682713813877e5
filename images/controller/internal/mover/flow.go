package mover

import (
	"context"
	"crypto/md5" //nolint:gosec // what ETags are made of
	"encoding/base64"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// limitStep is how much is read at once under a limit, in bytes.
const limitStep = 64 << 10

// flow is data on its way, counted and held to the limit.
type flow struct {
	ctx     context.Context
	from    io.Reader
	limiter *rate.Limiter
	counter *atomic.Int64
}

func (m *Mover) flow(ctx context.Context, from io.Reader, counter *atomic.Int64) *flow {
	return &flow{ctx: ctx, from: from, limiter: m.limiter, counter: counter}
}

// Read implements io.Reader.
func (f *flow) Read(p []byte) (int, error) {
	if f.limiter != nil {
		p = p[:min(len(p), limitStep)]
	}
	n, err := f.from.Read(p)
	f.counter.Add(int64(n))
	if f.limiter != nil && n > 0 {
		if waitErr := f.limiter.WaitN(f.ctx, n); waitErr != nil {
			return n, waitErr
		}
	}
	return n, err
}

// composite is the ETag of an object that was uploaded in parts with these MD5 digests, in hexadecimal digits.
func composite(parts []string) string {
	whole := md5.New() //nolint:gosec // what ETags are made of
	for _, part := range parts {
		raw, err := hex.DecodeString(part)
		if err != nil {
			return "" // equals no ETag
		}
		_, _ = whole.Write(raw) // never fails
	}
	return hex.EncodeToString(whole.Sum(nil)) + "-" + strconv.Itoa(len(parts))
}

// partsOf is how many parts an object with this ETag has.
func partsOf(etag string) int {
	_, count, _ := strings.Cut(etag, "-")
	parts, err := strconv.Atoi(count)
	if err != nil {
		return 0
	}
	return parts
}

// contentMD5 is an ETag in the form of the header Content-MD5.
func contentMD5(etag string) (string, error) {
	raw, err := hex.DecodeString(etag)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
