package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

const (
	// scarce is below the reserve of 3 %, in percent.
	scarce = 2
	// refusing is how long writes are refused.
	refusing = 20 * time.Second

	capacityReady = "CapacityReady"
	capacityLimit = 5 * time.Minute
)

func full() Scenario {
	return Scenario{
		Name: "full", About: "the volume of one replica fills up and is freed or grows",
		Refusals: []string{
			"PutObject InsufficientStorage", "UploadPart InsufficientStorage",
			"CreateMultipartUpload InsufficientStorage", "CompleteMultipartUpload InsufficientStorage",
		},
		Play: fillUp,
	}
}

// fillUp fills a volume. One that cannot grow stays full for a while; one that can has room again by itself.
func fillUp(ctx context.Context, g *ground.Ground) (err error) {
	pod, err := g.Any(ctx, names.GarageApp)
	if err != nil {
		return err
	}
	claim := "data-" + pod.Name
	path, err := ground.VolumePath(ctx, g.Stage, claim)
	if err != nil {
		return err
	}
	grows, err := g.Grows(ctx, claim)
	if err != nil {
		return err
	}
	if err := ground.Fill(ctx, path, scarce); err != nil {
		return err
	}
	g.Sayf("the volume of %s is full", pod.Name)
	defer func() { err = errors.Join(err, ground.Empty(ctx, path)) }()
	if grows {
		return g.AwaitCondition(ctx, capacityLimit, capacityReady, plan.ReasonGrowing, plan.ReasonEnough)
	}
	if err := g.AwaitCondition(ctx, capacityLimit, capacityReady, plan.ReasonExpansionNotAllowed); err != nil {
		return err
	}
	g.Wait(ctx, refusing)
	if err := ground.Empty(ctx, path); err != nil {
		return err
	}
	g.Sayf("it is freed")
	return g.AwaitCondition(ctx, capacityLimit, capacityReady, plan.ReasonEnough)
}
