package layout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/lib/layout"
)

func present(pod string) layout.Replica { return layout.Replica{Pod: pod, Exists: true, Ready: true} }

func outdated(pod string) layout.Replica {
	r := present(pod)
	r.Outdated = true
	return r
}

func down(r layout.Replica, trouble string) layout.Replica {
	r.Ready, r.Trouble = false, trouble
	return r
}

func TestRoll(t *testing.T) {
	gone := layout.Replica{Pod: "garage-a-1"}
	cases := map[string]struct {
		reason   string
		replicas []layout.Replica
		want     layout.Turn // Message is a part
	}{
		"all run the present template": {
			"nothing restarts when nothing it reads has changed",
			[]layout.Replica{present("garage-a-0"), present("garage-a-1"), present("garage-a-2")},
			layout.Turn{},
		},
		"one is down and nothing changed": {
			"Kubernetes restarts it, not we", []layout.Replica{present("garage-a-0"), down(present("garage-a-1"), "")}, layout.Turn{},
		},
		"all are outdated": {
			"one at a time, the highest ordinal first, as Kubernetes does",
			[]layout.Replica{outdated("garage-a-0"), outdated("garage-a-1"), outdated("garage-a-2")},
			layout.Turn{Kind: layout.ReplaceProof, Pod: "garage-a-2", Message: "3 of 3 replicas wait"},
		},
		"the next": {
			"the one before came back",
			[]layout.Replica{outdated("garage-a-0"), outdated("garage-a-1"), present("garage-a-2")},
			layout.Turn{Kind: layout.ReplaceProof, Pod: "garage-a-1", Message: "2 of 3 replicas wait"},
		},
		"the first one does not come back": {
			"a template that does not start must not take the others",
			[]layout.Replica{outdated("garage-a-0"), outdated("garage-a-1"), down(present("garage-a-2"), "garage: CrashLoopBackOff")},
			layout.Turn{Kind: layout.Hold, Message: "until these are ready: garage-a-2 (garage: CrashLoopBackOff)"},
		},
		"the template was mended": {
			"the one that does not start has the mended one at once",
			[]layout.Replica{outdated("garage-a-0"), present("garage-a-1"), down(outdated("garage-a-2"), "CrashLoopBackOff")},
			layout.Turn{Kind: layout.Replace, Pod: "garage-a-2", Message: "garage-a-2, which is not ready, is restarted"},
		},
		"a replica has no Pod": {
			"two of three would be one",
			[]layout.Replica{outdated("garage-a-0"), gone, outdated("garage-a-2")},
			layout.Turn{Kind: layout.Hold, Message: "garage-a-1 (has no Pod)"},
		},
		"another replica is down": {
			"the loss of one more is the loss of the store",
			[]layout.Replica{outdated("garage-a-0"), down(present("garage-a-1"), "no node"), outdated("garage-a-2")},
			layout.Turn{Kind: layout.Hold, Message: "garage-a-1 (no node)"},
		},
		"the only replica": {
			"there is nothing to wait for",
			[]layout.Replica{outdated("garage-a-0")},
			layout.Turn{Kind: layout.Replace, Pod: "garage-a-0", Message: "garage-a-0 is restarted"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := layout.Roll(c.replicas)
			assert.Equal(t, c.want.Kind, got.Kind, c.reason)
			assert.Equal(t, c.want.Pod, got.Pod, c.reason)
			assert.Contains(t, got.Message, c.want.Message, c.reason)
		})
	}
}
