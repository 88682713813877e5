package layout

import (
	"fmt"
	"strings"
	"time"
)

// Worker is a background task of a Garage process.
type Worker struct {
	ID    int // counts from the start of the process
	Name  string
	State string // idle, busy, throttled or done
	Queue int    // items waiting; 0 when the worker has no queue
	// Errors since the process started.
	Errors int
	// LastError is how long ago the last of them was; meaningless when there was none.
	LastError time.Duration
	// Disabled workers exist and do nothing.
	Disabled bool
	// Paused tells that a check of all blocks was stopped half-way.
	Paused bool
}

// Table is what a node tells of one of its tables.
type Table struct {
	Name        string
	Items       int
	MerkleQueue int // entries that other nodes cannot see yet
	InsertQueue int // entries that wait to be sent to other nodes
}

// Account is what one node tells of its own copies. Only the node itself knows them: "healthy" is about connections.
type Account struct {
	Name string // the Pod's
	// Silence is why the node did not answer, empty when it did. Everything below means nothing when it did not.
	Silence string
	// Run names the Garage process. A process knows nothing of what its predecessor was asked.
	Run string
	// AllConnected tells that this node is connected to all nodes and every partition has all its copies on live nodes.
	AllConnected bool
	// Quorate tells that every partition has enough copies on live nodes for reads and writes.
	Quorate bool
	// Sees is the nodes that it is connected to, itself among them.
	Sees map[string]bool
	// Draining tells that an older version of the layout is still live.
	Draining bool
	Tables   []Table
	Workers  []Worker
	// Blocks that the metadata name, and Queue of those that have to be looked at, some of them later.
	Blocks int
	Queue  int
	// FailedBlocks could not be copied or deleted; Garage tries them again after up to an hour.
	FailedBlocks int
	// LackedBlocks are those of them that the node needs and does not have.
	LackedBlocks int
	// Examined tells that of both numbers those blocks are taken off that nothing acknowledged needs, see Unneeded.
	Examined bool
}

// Evidence is what the gate decides from.
type Evidence struct {
	Now time.Time
	// Delay is how long after it learnt of a block Garage begins to copy it: 2 x rpc_timeout_msec, the longest in force.
	Delay    time.Duration
	Accounts []Account // of every node that has a role, but for Absent
	// Absent is the node that cannot be asked; empty when all are. Then the proof is that the others hold everything
	// without it, see Living.
	Absent string
}

// Proof is how far the proof is: what was asked of the nodes and what was seen since. It holds for the processes that
// it was begun with. The zero value is a proof that was not begun.
type Proof struct {
	Runs   map[string]string // by node
	Tables time.Time         // the nodes were asked to compare all tables
	Synced time.Time         // all tables had been compared; the nodes were asked to look for missing blocks
	Retry  time.Time         // failed blocks were asked for again, after which missing ones have to be looked for once more
	// Repairs is the newest block repair of each node before ours.
	Repairs map[string]int
	Found   time.Time // every node had looked for missing blocks
	Queued  bool      // what was found waits to be copied, or was
	// Seen is what was seen at rest since the last of the times above, by node and thing.
	Seen map[string]bool
}

// Request is what has to be asked of all nodes.
type Request int

// The requests.
const (
	NoRequest   Request = iota
	CompareAll          // compare all tables: repair "tables"
	FindBlocks          // look for blocks that are missing: repair "blocks"
	RetryFailed         // try failed blocks again at once
)

// Gate is the verdict on whether every node holds a copy of everything that was acknowledged when the proof began.
type Gate struct {
	Open    bool
	Request Request
	// Examine asks for a look at the failed blocks, and for the same question with accounts that are Examined.
	Examine bool
	// Proof to come with at the next look. When the request fails it is void and the zero Proof takes its place.
	Proof   Proof
	Message string // why the gate is closed, one clause
}

const (
	// pickUp is how long after a request the workers surely have it.
	pickUp = 5 * time.Second
	// again is how long a failure is left alone before the proof starts over or blocks are tried again.
	again = time.Minute
)

// Prove goes on with a proof. The ladder, from Garage 2.5.0's own order of work (a wiped node was seen to answer
// "healthy" with empty queues while half of its blocks were missing):
//
//  1. every node answers, is connected to all, one version of the layout is live
//  2. all tables are compared: each synchroniser idle since, every queue empty
//  3. every node looked for missing blocks, to the end and without an error
//  4. the delay is over after which Garage copies the blocks it learnt of in 2
//  5. every node's block queue is worked off, nothing is deferred, no block failed
//
// A node that restarts in between makes it start over: its queues are empty because it knows nothing yet.
func Prove(p Proof, e Evidence) Gate {
	problem := unfit(e.Accounts)
	if e.Absent != "" {
		problem = unfitLiving(e)
	}
	if problem != "" {
		return Gate{Message: problem}
	}
	if stale(p, e) {
		return begin(e)
	}
	p.Seen = copied(p.Seen)
	if p.Synced.IsZero() {
		return compare(p, e)
	}
	if !p.Retry.Before(p.Synced) {
		// Garage 2.5.0 forgets a block's failures when it is to try again, and does not wake the worker for it
		// (garage_block, IndexedQueue::clear_backoff): nothing has failed and all are idle while the block is missing.
		// Whoever looks for missing blocks wakes it.
		return find(p, e)
	}
	return settled(p, e)
}

// unfit tells why there is nothing to prove right now.
func unfit(accounts []Account) string {
	if len(accounts) == 0 {
		return "no node is known"
	}
	for _, a := range accounts {
		switch {
		case a.Silence != "":
			return fmt.Sprintf("%s does not tell how far it is: %s", a.Name, a.Silence)
		case !a.AllConnected:
			return a.Name + " is not connected to all other replicas"
		case a.Draining:
			return a.Name + " has not taken over the present layout"
		}
	}
	return ""
}

// stale: not begun, begun with other processes, or in what the clock calls the future.
func stale(p Proof, e Evidence) bool {
	if p.Tables.IsZero() || len(p.Runs) != len(e.Accounts) {
		return true
	}
	for _, a := range e.Accounts {
		if a.Run == "" || p.Runs[a.Name] != a.Run {
			return true
		}
	}
	return e.Now.Before(p.Tables) || e.Now.Before(p.Synced) || e.Now.Before(p.Retry)
}

func begin(e Evidence) Gate {
	p := Proof{Runs: map[string]string{}, Tables: e.Now}
	for _, a := range e.Accounts {
		p.Runs[a.Name] = a.Run
	}
	return Gate{Request: CompareAll, Proof: p, Message: "the replicas begin to compare their tables"}
}

// compare is rung 2. Queues are rarely all empty at one moment while clients write, so each counts once it was seen
// empty: what was in it when the comparison ended has then been worked off.
func compare(p Proof, e Evidence) Gate {
	age := e.Now.Sub(p.Tables)
	if failed := failedSync(e.Accounts, age); failed != "" {
		if age > again {
			return begin(e)
		}
		return Gate{Proof: p, Message: "the comparison of the table " + failed + " failed and is begun again"}
	}
	if age < pickUp {
		return Gate{Proof: p, Message: "the replicas compare their tables"}
	}
	if missing := unseen(p.Seen, e.Accounts, syncedThings); missing != "" {
		return Gate{Proof: p, Message: "the replicas compare their tables, still at it: " + missing}
	}
	return find(p, e)
}

// find begins rung 3.
func find(p Proof, e Evidence) Gate {
	p.Synced, p.Seen, p.Repairs, p.Found, p.Queued = e.Now, map[string]bool{}, map[string]int{}, time.Time{}, false
	for _, a := range e.Accounts {
		p.Repairs[a.Name] = newestRepair(a).ID
	}
	return Gate{Request: FindBlocks, Proof: p, Message: "the replicas begin to look for blocks that are missing"}
}

// settled is rungs 3 to 5.
func settled(p Proof, e Evidence) Gate {
	for _, a := range e.Accounts {
		repair := newestRepair(a)
		if repair.ID <= p.Repairs[a.Name] || repair.State != "done" {
			return Gate{Proof: p, Message: a.Name + " looks for blocks that are missing"}
		}
		if repair.Errors > 0 {
			return Gate{Message: a.Name + " could not look through all of its blocks"}
		}
	}
	if p.Found.IsZero() {
		p.Found = e.Now
	}
	if e.Now.Sub(p.Synced) < e.Delay+pickUp || e.Now.Sub(p.Found) < pickUp {
		return Gate{Proof: p, Message: "the delay before Garage copies blocks is not over"}
	}
	if !p.Queued {
		missing := unseen(p.Seen, e.Accounts, queuedThings)
		p.Queued = missing == ""
		return Gate{Proof: p, Message: "blocks are being copied" + atIt(missing)}
	}
	if missing := unseen(p.Seen, e.Accounts, copiedThings); missing != "" {
		return Gate{Proof: p, Message: "blocks are being copied" + atIt(missing)}
	}
	return without(p, e)
}

func atIt(missing string) string {
	if missing == "" {
		return ""
	}
	return ", still at it: " + missing
}

// without opens the gate when no block has failed.
func without(p Proof, e Evidence) Gate {
	for _, a := range e.Accounts {
		if e.failed(a) == 0 {
			continue
		}
		gate := Gate{Proof: p, Message: a.Name + " has blocks that could not be copied"}
		switch {
		case e.Now.Sub(p.Retry) <= again:
		case !a.Examined:
			gate.Examine = true
		default:
			gate.Request, gate.Proof.Retry, gate.Proof.Seen = RetryFailed, e.Now, map[string]bool{}
		}
		return gate
	}
	return Gate{Open: true, Proof: p, Message: e.proven()}
}

// thing is something of a node that comes to rest.
type thing struct {
	name   string
	atRest bool
}

const (
	syncSuffix     = " sync"
	repairWorker   = "Block repair worker"
	deferredWorker = "Block resync queue deferred worker"
	resyncPrefix   = "Block resync worker"
	idle           = "idle"
)

// syncedThings are a node's synchronisers and queues of tables. A node without any is not understood.
func syncedThings(a Account) []thing {
	var things []thing
	for _, w := range a.Workers {
		if table, ok := strings.CutSuffix(w.Name, syncSuffix); ok {
			things = append(things, thing{"table " + table, w.State == idle && w.Queue == 0})
		}
	}
	if len(things) == 0 {
		return []thing{{"tables", false}}
	}
	for _, t := range a.Tables {
		things = append(things, thing{"queues of table " + t.Name, t.MerkleQueue == 0 && t.InsertQueue == 0})
	}
	return things
}

// queuedThings is a node's worker that puts blocks into the queue two seconds after they were found. While clients write
// it always holds some, but it rests only while none of them is older (garage_block 2.5.0, DeferredWorker::work).
func queuedThings(a Account) []thing {
	deferred := thing{name: deferredWorker}
	for _, w := range a.Workers {
		if w.Name == deferredWorker {
			deferred.atRest = w.State == idle
		}
	}
	return []thing{deferred}
}

// copiedThings are a node's workers that copy blocks. An idle one has nothing that is due: what else is in its queue
// are deletions of the future.
func copiedThings(a Account) []thing {
	var things []thing
	for _, w := range a.Workers {
		if strings.HasPrefix(w.Name, resyncPrefix) && !w.Disabled {
			things = append(things, thing{w.Name, w.State == idle})
		}
	}
	if len(things) == 0 {
		things = []thing{{resyncPrefix, false}}
	}
	return things
}

// unseen adds to seen what is at rest now and names the first thing that never was; empty when all were.
func unseen(seen map[string]bool, accounts []Account, things func(Account) []thing) string {
	missing := ""
	for _, a := range accounts {
		for _, t := range things(a) {
			key := a.Name + "/" + t.name
			seen[key] = seen[key] || t.atRest
			if !seen[key] && missing == "" {
				missing = t.name + " of " + a.Name
			}
		}
	}
	return missing
}

// failedSync names a table whose comparison failed since it was asked for.
func failedSync(accounts []Account, since time.Duration) string {
	for _, a := range accounts {
		for _, w := range a.Workers {
			if table, ok := strings.CutSuffix(w.Name, syncSuffix); ok && w.Errors > 0 && w.LastError <= since {
				return table + " on " + a.Name
			}
		}
	}
	return ""
}

// newestRepair is the node's last block repair, the zero Worker when there was none.
func newestRepair(a Account) Worker {
	var newest Worker
	for _, w := range a.Workers {
		if w.Name == repairWorker && w.ID > newest.ID {
			newest = w
		}
	}
	return newest
}

func copied(seen map[string]bool) map[string]bool {
	clone := make(map[string]bool, len(seen))
	for key, value := range seen {
		clone[key] = value
	}
	return clone
}
