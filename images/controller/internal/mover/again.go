package mover

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// attempts is how often a transfer is tried. The SDK repeats requests whose body is held; a stream has to begin anew.
	attempts   = 4
	firstPause = 200 * time.Millisecond // doubles with each attempt
)

var (
	// errOtherVersion tells that the object is not, or no more, the version that is asked for.
	errOtherVersion = errors.New("another version than expected")
	// errSpoiled tells that a side gives other data than it was given.
	errSpoiled = errors.New("the data differs from its digest")
)

// again repeats a transfer that failed, unless repeating cannot help.
func again(ctx context.Context, transfer func() error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := transfer()
		if err == nil || attempt == attempts || errors.Is(err, errOtherVersion) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		pause *= 2
	}
}

// once leaves the repetition of streams to again.
func once(o *s3.Options) { o.RetryMaxAttempts = 1 }

func isCode(err error, code string) bool {
	var told smithy.APIError
	return errors.As(err, &told) && told.ErrorCode() == code
}

// asVersion tells from a refused conditional request that the object is not the version it was asked for.
func asVersion(err error) error {
	answer := (*smithyhttp.ResponseError)(nil)
	if isCode(err, "NoSuchKey") || errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusPreconditionFailed {
		return errors.Join(errOtherVersion, err)
	}
	return err
}

// isSpoiled tells data that cannot be read from a side that cannot be reached.
func isSpoiled(err error) bool {
	answer := (*smithyhttp.ResponseError)(nil)
	return errors.Is(err, errSpoiled) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errOtherVersion) ||
		errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusInternalServerError
}
