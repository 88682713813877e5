package revocation

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastWrite bounds what is written when the replica ends.
const lastWrite = 5 * time.Second

// Recorder writes the ledger of its replica down.
type Recorder struct {
	Ledger *Ledger
	Reader client.Reader // asks the apiserver, no cache
	Writer client.Client
	Pace   Pace
	Now    func() time.Time
	Log    logr.Logger
}

// NeedLeaderElection is false: every replica issues keys.
func (*Recorder) NeedLeaderElection() bool { return false }

// Start writes until the context ends, and once more then: what was issued before a restart is not forgotten.
func (r *Recorder) Start(ctx context.Context) error {
	ticker := time.NewTicker(r.Pace.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.write(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			r.write(last)
			return nil
		}
	}
}

func (r *Recorder) write(ctx context.Context) {
	fresh, forgotten := r.Ledger.take()
	if len(fresh) == 0 && forgotten == 0 {
		return
	}
	dropped, err := store{reader: r.Reader, writer: r.Writer, now: r.Now}.add(ctx, fresh)
	if err != nil {
		r.Ledger.giveBack(fresh)
		r.Log.Info("holders of keys not written down yet, trying again", "holders", len(fresh), "reason", err.Error())
		return
	}
	if lost := dropped + forgotten; lost > 0 {
		r.Log.Error(nil, "too many holders of keys to remember them all: the keys of some will live to their end even if the right is taken away", "holders", lost)
	}
}
