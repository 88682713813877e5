// Package ground is where a tour happens: a running sandbox with a store, and the ways to hurt it and to see that it is
// well again. The clients' way into the cluster leads over the first node, so that one is never taken away; what runs
// on it is as mortal as anything else.
package ground

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/demo/door"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	// Account is the ServiceAccount of the clients.
	Account = "tour"
	// storeLimit is how long a store may take to come up or to be well again, on a busy machine of two cores.
	storeLimit = 10 * time.Minute
	// early is how long before the end of a key the next one is fetched.
	early = 5 * time.Second
	plane = "a"
)

// Ground is a sandbox with a store.
type Ground struct {
	*stage.Stage

	// Bucket is the SystemBucket that the clients use.
	Bucket client.ObjectKey
	// Dice decide what is hit and when.
	Dice *rand.Rand
}

// Open finds the sandbox, enables the module if it is not, with the StorageClass if there is no store yet, and waits
// for the store.
func (g *Ground) Open(ctx context.Context, size, class string) error {
	sets, err := g.sets(ctx)
	if err != nil {
		return err
	}
	if len(sets) == 0 {
		if err := g.Configure(ctx, true, map[string]any{"storageClass": class}); err != nil {
			return err
		}
	}
	if err := g.Namespace(ctx, g.Bucket.Namespace); err != nil {
		return err
	}
	err = g.Await(ctx, stage.Wish{What: "SystemBuckets to be accepted", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := g.Stage.Bucket(ctx, g.Bucket, size)
		return err == nil, "", err
	}})
	if err != nil {
		return err
	}
	if err := g.AwaitCondition(ctx, storeLimit, StorageReady, plan.ReasonReady); err != nil {
		return err
	}
	return g.AwaitBucket(ctx, g.Bucket, storeLimit)
}

// Door is how a client reaches the bucket: a token of a ServiceAccount that may read and write it is exchanged for a key
// at the STS endpoint, again and again as keys end. It returns the bucket's name in S3, too.
func (g *Ground) Door(ctx context.Context) (s3.Options, string, error) {
	who := consumer.Consumer{Name: Account, Namespace: g.Bucket.Namespace, Bucket: g.Bucket.Name}
	if err := errors.Join(who.ServiceAccount(ctx, g.Admin), who.Allow(ctx, g.Admin, names.ReadSubresource, names.WriteSubresource)); err != nil {
		return s3.Options{}, "", err
	}
	bucket, _, err := g.ReadBucket(ctx, g.Bucket)
	if err != nil {
		return s3.Options{}, "", err
	}
	way, err := door.Find(ctx, g.Stage, g.Bucket)
	if err != nil {
		return s3.Options{}, "", err
	}
	http := way.Client()
	exchange := sts.New(sts.Options{BaseEndpoint: aws.String(names.STSURL), Region: names.Region, HTTPClient: http})
	keys := stscreds.NewWebIdentityRoleProvider(exchange, names.RoleARN(g.Bucket.Namespace, g.Bucket.Name), tokens{g, who.Key()})
	cached := aws.NewCredentialsCache(keys, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = early })
	return s3.Options{BaseEndpoint: aws.String(names.S3URL), Region: names.Region, HTTPClient: http, Credentials: cached},
		bucket.Status.BucketName, nil
}

// tokens is where a client in a Pod would read a file that kubelet renews.
type tokens struct {
	ground  *Ground
	account client.ObjectKey
}

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t tokens) GetIdentityToken() ([]byte, error) {
	token, err := door.Token(context.Background(), t.ground.Stage, t.account, names.Audience)
	return []byte(token), err
}

// Pause lets the clients work for a random while within the bounds: the moment of a blow is what is random.
func (g *Ground) Pause(ctx context.Context, least, most time.Duration) {
	g.Wait(ctx, least+time.Duration(g.Dice.Int64N(int64(most-least)+1)))
}

// Wait lets the clients work for so long: what is on trial is that the store bears a state that lasts.
func (*Ground) Wait(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Sayf tells of a step within a scenario.
func (g *Ground) Sayf(format string, args ...any) {
	g.Stage.Sayf("  " + time.Now().UTC().Format(time.TimeOnly) + " " + fmt.Sprintf(format, args...))
}
