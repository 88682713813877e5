package layout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/deckhouse/system-s3/lib/layout"
)

// town is a small world in which nodes come and go, clients write, and whatever Next decides is carried out. Three
// replicas hold sets of writes; the gate knows, as the real one, only whether replicas are equal, not what they should
// hold.
type town struct {
	t        *testing.T
	random   *rand.Rand
	now      time.Time
	nodes    [6]townNode
	replicas [3]townReplica
	writes   uint64 // acknowledged
	content  int    // of volumes, counts up
	moved    time.Time
	story    []string
}

type townNode struct{ gone, outside, off, closed bool }

type townReplica struct {
	pod      int // node, or pending
	bound    bool
	home     int
	leaving  bool
	holds    uint64
	content  int // another one after the volume was emptied
	proven   int // content at the last proof of all
	outdated bool
}

const pending = -1

func newTown(t *testing.T, seed uint64) *town {
	t.Helper()
	w := &town{t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range w.replicas {
		w.content++
		w.replicas[i] = townReplica{pod: i, bound: true, home: i, content: w.content, proven: w.content}
	}
	w.moved = w.now.Add(-time.Hour)
	return w
}

func (w *town) up(i int) bool {
	r := w.replicas[i]
	return r.pod != pending && !w.nodes[r.pod].gone && !w.nodes[r.pod].off
}

func (w *town) ups() []int {
	var found []int
	for i := range w.replicas {
		if w.up(i) {
			found = append(found, i)
		}
	}
	return found
}

func (w *town) takes(n int) bool {
	node := w.nodes[n]
	return !node.gone && !node.outside && !node.off && !node.closed
}

func (w *town) scene() layout.Scene {
	s := layout.Scene{Now: w.now, Moved: w.moved, Pause: 10 * time.Minute, Label: "l", WaysOut: "w"}
	name := func(n int) string { return fmt.Sprint("n", n) }
	for n, node := range w.nodes {
		if !node.gone {
			p := layout.Place{Name: name(n), InTier: !node.outside, Ready: !node.off}
			if node.closed {
				p.Closed = "is cordoned"
			}
			s.Places = append(s.Places, p)
		}
	}
	for i, r := range w.replicas {
		told := layout.Resident{Replica: layout.Replica{Pod: fmt.Sprint("r", i), Exists: true, Ready: w.up(i), Outdated: r.outdated}, Up: w.up(i)}
		if r.pod != pending {
			told.Node = name(r.pod)
		}
		told.Volume = layout.Volume{Claim: fmt.Sprint("c", i), Bound: r.bound, Leaving: r.leaving, Whole: r.content == r.proven}
		if r.bound && !w.nodes[r.home].gone {
			told.Volume.Homes = []string{name(r.home)}
		} else if r.bound {
			told.Volume.Missing = []string{name(r.home)}
		}
		s.Residents = append(s.Residents, told)
	}
	return s
}

// events are what people, machines and clients do; i is a replica and n a node, both chosen by chance.
var townEvents = map[string]func(w *town, i, n int){
	"label off":   func(w *town, _, n int) { w.nodes[n].outside = true },
	"label on":    func(w *town, _, n int) { w.nodes[n].outside = false },
	"node gone":   func(w *town, _, n int) { w.nodes[n].gone = true },
	"node new":    func(w *town, _, n int) { w.nodes[n].gone = false },
	"node off":    func(w *town, _, n int) { w.nodes[n].off = true },
	"node on":     func(w *town, _, n int) { w.nodes[n].off = false },
	"cordon":      func(w *town, _, n int) { w.nodes[n].closed = true },
	"uncordon":    func(w *town, _, n int) { w.nodes[n].closed = false },
	"new release": func(w *town, _, _ int) { w.outdate() },
	"wiped": func(w *town, i, _ int) {
		w.content++
		w.replicas[i].holds, w.replicas[i].content = 0, w.content
	},
	"claim deleted": func(w *town, i, _ int) { w.replicas[i].leaving = w.replicas[i].bound && w.replicas[i].pod != pending },
	"write": func(w *town, i, n int) {
		if ups := w.ups(); len(ups) >= 2 && w.writes < 1<<60 {
			write := w.writes + 1 // the next bit
			w.writes |= write
			first := (i + n) % len(ups)
			w.replicas[ups[first]].holds |= write
			w.replicas[ups[(first+1)%len(ups)]].holds |= write
		}
	},
	"copying": func(w *town, _, _ int) {
		all := uint64(0)
		for _, i := range w.ups() {
			all |= w.replicas[i].holds
		}
		for _, i := range w.ups() {
			w.replicas[i].holds = all
		}
	},
	"time passes": func(w *town, _, _ int) { w.now = w.now.Add(4 * time.Minute) },
}

func (w *town) outdate() {
	for i := range w.replicas {
		w.replicas[i].outdated = true
	}
}

// kubernetes ends Pods of nodes that are gone or drained and starts what is pending.
func (w *town) kubernetes() {
	for i := range w.replicas {
		r := &w.replicas[i]
		if r.pod != pending && w.nodes[r.pod].gone && w.random.IntN(2) == 0 {
			w.end(i)
		}
		if r.pod != pending && w.nodes[r.pod].closed && w.random.IntN(4) == 0 && len(w.ups()) == 3 && !r.leaving {
			w.end(i) // drained, one at a time
		}
	}
	for i := range w.replicas {
		if w.replicas[i].pod == pending {
			w.start(i)
		}
	}
}

// end ends a Pod; a claim that is being deleted goes with it.
func (w *town) end(i int) {
	r := &w.replicas[i]
	r.pod, r.outdated = pending, false
	if r.leaving {
		r.bound, r.leaving, r.holds = false, false, 0
	}
}

func (w *town) start(i int) {
	r := &w.replicas[i]
	for n := range w.nodes {
		taken := false
		for j, other := range w.replicas {
			taken = taken || j != i && other.pod == n
		}
		if taken || !w.takes(n) || r.bound && r.home != n {
			continue
		}
		r.pod = n
		if !r.bound {
			w.content++
			r.bound, r.home, r.content, r.holds, w.moved = true, n, w.content, 0, w.now
		}
		return
	}
}

// equal is the gate: all that are asked are up and hold the same.
func (w *town) equal(but int) bool {
	var holds []uint64
	for i, r := range w.replicas {
		if i == but {
			if w.up(i) {
				return false
			}
			continue
		}
		if !w.up(i) {
			return false
		}
		holds = append(holds, r.holds)
	}
	for _, h := range holds {
		if h != holds[0] {
			return false
		}
	}
	return true
}

// obey carries a turn out if its gate is open, and checks that nothing that existed is on fewer than two volumes after.
func (w *town) obey(turn layout.Turn) bool {
	if turn.Kind == layout.Rest || turn.Kind == layout.Hold {
		return false
	}
	var pod int
	if _, err := fmt.Sscanf(turn.Pod, "r%d", &pod); err != nil {
		w.t.Fatal(err)
	}
	absent := pending
	if turn.Living {
		absent = pod
	}
	if turn.Kind != layout.Replace && !w.equal(absent) {
		return false
	}
	if turn.Kind != layout.Replace && absent == pending {
		for i := range w.replicas {
			w.replicas[i].proven = w.replicas[i].content
		}
	}
	if turn.Kind != layout.Replace {
		for i := range w.replicas {
			if i != pod && !w.up(i) {
				w.failf(turn, "two replicas are away at once")
			}
		}
	}
	r := &w.replicas[pod]
	if turn.Kind == layout.Renew && r.bound {
		r.leaving = true
	}
	if r.leaving {
		w.survives(turn, pod)
	}
	if w.random.IntN(4) == 0 {
		return true // killed between the claim and the Pod
	}
	w.end(pod)
	return true
}

// survives checks that both other replicas hold whatever any volume holds.
func (w *town) survives(turn layout.Turn, pod int) {
	all := uint64(0)
	for _, r := range w.replicas {
		all |= r.holds
	}
	for i, r := range w.replicas {
		if i != pod && r.holds != all {
			w.failf(turn, "the volume of r%d is deleted, and r%d lacks %b of %b", pod, i, all&^r.holds, all)
		}
	}
}

func (w *town) failf(turn layout.Turn, format string, a ...any) {
	w.t.Fatalf("%s\nturn %+v\ntown %+v\nafter %v", fmt.Sprintf(format, a...), turn, w.replicas, w.story)
}

func (w *town) pass() {
	w.now = w.now.Add(30 * time.Second)
	turn := layout.Next(w.scene())
	if w.obey(turn) {
		w.story = append(w.story, fmt.Sprint("turn ", turn.Kind, " of ", turn.Pod))
	}
	w.kubernetes()
}

// TestNoSequenceOfEventsCostsACopyWithoutProof: whatever happens to nodes, disks and claims, a volume is deleted only
// while both other replicas hold everything that exists.
func TestNoSequenceOfEventsCostsACopyWithoutProof(t *testing.T) {
	names := slices.Sorted(maps.Keys(townEvents))
	turns := 0
	for seed := range uint64(1000) {
		w := newTown(t, seed)
		for range 60 {
			name := names[w.random.IntN(len(names))]
			if quiet := w.random.IntN(3) > 0; quiet {
				name = [...]string{"write", "copying", "time passes"}[w.random.IntN(3)]
			}
			i, n := w.random.IntN(3), w.random.IntN(len(w.nodes))
			townEvents[name](w, i, n)
			w.story = append(w.story, fmt.Sprint(name, " ", i, n))
			before := len(w.story)
			w.pass()
			turns += len(w.story) - before
		}
	}
	if turns < 3000 {
		t.Fatalf("only %d turns were taken: the model is not led through what it is for", turns)
	}
	t.Logf("%d turns", turns)
}

// TestATierThatChangesIsFollowed: three nodes of another tier draw all replicas, and it comes to rest.
func TestATierThatChangesIsFollowed(t *testing.T) {
	for seed := range uint64(50) {
		w := newTown(t, seed)
		townEvents["write"](w, 0, 0)
		for n := range w.nodes {
			w.nodes[n].outside = n < 3
		}
		w.outdate()
		for range 200 {
			townEvents["copying"](w, 0, 0)
			w.pass()
		}
		for i, r := range w.replicas {
			if r.pod < 3 || r.outdated || r.leaving || r.holds != w.writes {
				t.Fatalf("r%d: %+v after %v", i, r, w.story)
			}
		}
		if turn := layout.Next(w.scene()); turn.Kind != layout.Rest || turn.Place.Reason != "" {
			t.Fatalf("no rest: %+v", turn)
		}
	}
}
