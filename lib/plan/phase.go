package plan

import "slices"

// Phase of a migration, the move of the store to another StorageClass.
type Phase string

// Phases in their order. Copying and Verifying may come again; from Fencing on there is no way back.
const (
	// PhasePreparing: the target plane is made ready, beside the source plane that serves.
	PhasePreparing Phase = "Preparing"
	// PhaseCopying: passes over all buckets copy what the target plane has not.
	PhaseCopying Phase = "Copying"
	// PhaseVerifying: every object is read back from the target plane and compared.
	PhaseVerifying Phase = "Verifying"
	// PhaseHolding: the gateways of the source plane hold writes for a bounded time, and the rest is copied.
	PhaseHolding Phase = "Holding"
	// PhaseFencing: the source plane takes no writes any more, for good.
	PhaseFencing Phase = "Fencing"
	// PhaseSwitched: the target plane is the store; the gateways of the source plane forward to it.
	PhaseSwitched Phase = "Switched"
	// PhaseRetiring: the source plane is deleted.
	PhaseRetiring Phase = "Retiring"
)

// Fenced tells whether the migration can only go forward.
func (p Phase) Fenced() bool { return p == PhaseFencing || p.switched() }

// switched tells whether the target plane is the store.
func (p Phase) switched() bool { return p == PhaseSwitched || p == PhaseRetiring }

// revocable tells whether the migration can be called back. A phase of which nothing is known cannot.
func (p Phase) revocable() bool {
	return slices.Contains([]Phase{PhasePreparing, PhaseCopying, PhaseVerifying, PhaseHolding}, p)
}

// MigrationState is how far the store's move to another StorageClass is.
type MigrationState struct {
	// Source and Target are ids of planes.
	Source string `json:"source"`
	Target string `json:"target"`
	Phase  Phase  `json:"phase"`
	// Since when the phase is, in RFC 3339, UTC.
	Since string `json:"since"`
	// Objects of the source as last counted, and how many of them this phase has copied or verified; Bytes likewise.
	Objects     int64 `json:"objects"`
	Copied      int64 `json:"copied"`
	Bytes       int64 `json:"bytes"`
	CopiedBytes int64 `json:"copiedBytes"`
	// BytesPerSecond and SecondsLeft are coarse, because each change wakes hooks; 0 while unknown.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	SecondsLeft    int64 `json:"secondsLeft,omitempty"`
	// Awaited is one clause that tells what the migration waits for; empty when it waits for nothing.
	Awaited string `json:"awaited,omitempty"`
}
