package main

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// withHost makes the client tell the host it speaks to, once: by default the SDK puts the bucket into the host's name.
func withHost(o *s3.Options) {
	var once sync.Once
	tell := middleware.FinalizeMiddlewareFunc("TellHost", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok {
			once.Do(func() { tellf("host %s", request.URL.Host) })
		}
		return next.HandleFinalize(ctx, in)
	})
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(tell, middleware.After)
	})
}
