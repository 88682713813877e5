// Package migration decides the next step of the store's move from one plane, the source, to another, the target. It is
// pure: equal facts give equal steps. It refuses to know how a step is carried out. Before anything is given up, a guard
// proves that the target has it: writes are let in nowhere between the proof and the fence, the source's journal has no
// gap since before the last full pass, and the source goes only when nobody can reach it any more but by the target.
package migration

import (
	"time"

	"github.com/deckhouse/system-s3/lib/plan"
)

// Facts is all that a step depends on.
type Facts struct {
	// State as it is persisted; nil when there is none.
	State *plan.MigrationState
	// Planes of the plan.
	Planes []Plane
	// Doors are the gateways of the plane that is moved from, one for each replica, whether it is there or not.
	Doors []Door
	// Target is whether the plane that is moved to serves.
	Target Readiness
	// Selected is the plane that clients are sent to; empty while unknown.
	Selected string
	// SelectedFor is how long it has been, as far as this process saw.
	SelectedFor time.Duration
	Journal     Journal
	Work        Work
	Hold        Hold
	// Uploads are the source's unfinished multipart uploads.
	Uploads Uploads
	// Deleting tells that the StatefulSet of the retiring plane is gone: its deletion had begun, with proof.
	Deleting bool
}

// Plane of the plan.
type Plane struct {
	ID     string
	Role   plan.Role
	Frozen bool // something of it cannot be read
}

// Readiness of the target. Whole: every replica up, one version of the layout and all of it applied, and S3 answers.
type Readiness struct {
	Whole   bool
	Awaited string // a clause; empty when whole
}

// Door is the gateway of a replica of the source.
type Door struct {
	Name string // the Pod's
	// Run names the Pod and the process of the gateway; empty while there is no Pod.
	Run string
	// Gone tells that there is no Pod and that none will come: the StatefulSet is deleted.
	Gone bool
	// Answers tells that what follows was asked just now.
	Answers bool
	Fenced  bool
	To      string // where requests are forwarded; empty while they are not
}

// Journal is what this process follows.
type Journal struct {
	ID string // empty while none was begun
	// Runs are the doors by their Run that have it, all of them since before the pass began.
	Runs map[string]bool
	// Broken is why it has a gap; empty when it has none as far as is known.
	Broken string
	// Behind tells that there is more of it than can be settled within the time for which writes may wait.
	Behind bool
}

// Work is what was done to the target under the present journal.
type Work struct {
	Running  bool
	Copied   bool // a full pass ended
	Verified bool // every object was read back
	// Mismatch is the object that cannot be read back as the source has it.
	Mismatch string
	// Trouble is the last error of work that is to be tried again; a clause.
	Trouble string
	// PassedFenced tells that a full pass began after all doors were fenced and no write was on its way.
	PassedFenced bool
}

// Hold on writes.
type Hold struct {
	// Held tells that every door holds writes now, without a break, and no write is on its way.
	Held bool
	// For is how long ago it was begun; 0 when it was not.
	For time.Duration
	// Resting is how long writes go on before the next hold; 0 when one may begin.
	Resting time.Duration
	// Drained tells that since Held began the whole journal was read and everything in it settled.
	Drained bool
}

// Uploads that nobody has completed or aborted.
type Uploads struct {
	Count  int
	Waited time.Duration // since all else was ready
}

const (
	// HoldMost is how long writes may wait for the journal's rest before they are let go again.
	HoldMost = 5 * time.Second
	// LeaveLeast is how long clients get to leave a plane that they are no more sent to: each answer that is forwarded
	// ends its connection, and what is idle for longer is not about to ask.
	LeaveLeast = 10 * time.Second
	// UploadsMost is how long unfinished uploads are awaited.
	UploadsMost = 15 * time.Minute
)

// Kind of a step.
type Kind int

// The kinds.
const (
	Rest    Kind = iota // there is no migration
	Await               // nothing can be done now
	Record              // persist Phase
	Forget              // persist that there is no migration
	Copy                // begin a journal anew and then a full pass
	Verify              // read everything back
	HoldOn              // hold writes, or go on holding them
	Settle              // read the journal's rest and make the target equal
	LetGo               // let writes go on, then Phase
	Fence               // fence every door, and hold writes to see that none is on its way
	Again               // a full pass under the fence, since no journal proves the rest
	Forward             // let the doors forward to the target, and let go
	Delete              // delete what is left of Plane, one thing after the other
)

var kindNames = []string{"rest", "await", "record", "forget", "copy", "verify", "hold", "settle", "let go", "fence", "again", "forward", "delete"} //nolint:gochecknoglobals // a constant in all but syntax

func (k Kind) String() string { return kindNames[k] }

// Step is the decision.
type Step struct {
	Kind  Kind
	Phase plan.Phase // of Record and LetGo
	// Source and Target are of Record where there is no state yet.
	Source, Target string
	Plane          string // of Delete
	Why            string // one clause for the log
	Awaited        string // one clause for the administrator; empty when nothing is waited for
}
