package e2e

import (
	"context"
	"testing"
	"time"
)

// TestStory plays the life of a store in the order in which it happens. A chapter that later ones rest on ends the
// story when it fails.
func TestStory(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			site.Diagnose(ctx, namespace)
		}
	})
	s := &story{ledger: &ledger{}}
	chapters := []struct {
		name string
		play func(*testing.T)
		rest bool // later chapters rest on it
	}{
		{name: "an empty store", play: s.reset, rest: true},
		{name: "before the first bucket nothing of Garage exists", play: s.waitsForFirstBucket, rest: true},
		{name: "bad settings are refused by the name of the field", play: s.refusesSettings},
		{name: "bad SystemBuckets are refused at admission", play: s.refusesBuckets},
		{name: "without a StorageClass nothing is deployed", play: s.needsStorageClass, rest: true},
		{name: "the first bucket brings the store", play: s.becomesReady, rest: true},
		{name: "the replicas are healthy, each on its own node", play: s.isHealthy},
		{name: "consumer: the AWS CLI", play: s.runsCLI},
		{name: "consumer: the Go SDK's default configuration", play: s.runsProgram},
		{name: "consumer: refused without a RoleBinding", play: s.refusesStranger},
		{name: "STS says what is wrong", play: s.refusesAtSTS},
		{name: "STS speaks the whole protocol", play: s.speaksSTS},
		{name: "STS bears slow clients and an apiserver that is away", play: s.bearsHardship},
		{name: "the gateway says what is wrong", play: s.refusesAtGateway},
		{name: "a key opens one bucket for what RBAC grants", play: s.narrows},
		{name: "the status page is for whom RBAC lets see it", play: s.showsPage},
		{name: "the quota holds", play: s.holdsQuota},
		{name: "a deleted SystemBucket is gone with its data", play: s.deletesBucket},
		{name: "a key ends with ExpiredToken and clients go on", play: s.expires},
		{name: "a removed RoleBinding stops the next key", play: s.revokes},
		{name: "a right taken away takes back the keys", play: s.takesBack},
		{name: "nothing leads from one bucket to another", play: s.isolates},
		{name: "whatever is killed or deleted, nothing acknowledged is lost", play: s.survives},
		{name: "a consumer that starts now", play: s.startsNow},
		{name: "a changed template restarts the replicas one by one", play: s.rolls},
		{name: "nobody wrote down a key or a token", play: s.keepsSecrets},
	}
	for _, c := range chapters {
		if !t.Run(c.name, c.play) && c.rest {
			t.Fatalf("the rest of the story needs %q", c.name)
		}
	}
}

// story is what the chapters share.
type story struct {
	ledger *ledger
	images images
}

// images of the consumers, pushed once.
type images struct{ cli, program string }
