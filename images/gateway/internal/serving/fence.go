package serving

import (
	"github.com/deckhouse/system-s3/images/gateway/internal/fence"
	"github.com/deckhouse/system-s3/images/gateway/internal/gate"
)

// fencedGate closes the gate as soon as the fence is on the disk.
type fencedGate struct {
	fence *fence.Fence
	gate  *gate.Gate
}

// State is the fence's.
func (f *fencedGate) State() fence.State { return f.fence.State() }

// Set fences for good.
func (f *fencedGate) Set(to string) error {
	if err := f.fence.Set(to); err != nil {
		return err //nolint:wrapcheck // it is the answer
	}
	f.gate.Fence()
	return nil
}
