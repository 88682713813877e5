package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model is a small world that carries plans out, one step at a time, and in which things happen. From every cluster
// of up to five nodes and all settings it is led through every sequence of events of a short length, and must come to
// rest each time.
type model struct {
	masters, systems, s3s int
	mode, global          int // 0 not written, 1 false, 2 true
	class                 string
	classes               int // which of the sets below
	gib                   int64
	plane                 bool
	facts                 Facts
	template              int64
	claims                [3]modelClaim
	progress              Progress
}

type modelClaim struct {
	exists, full, fails, up bool
	// holds: the replica has everything that was acknowledged.
	holds           bool
	bytes, capacity int64
}

var classSets = [][]StorageClass{
	nil,
	{{Name: "grows", Default: true, Expandable: true}},
	{{Name: "grows", Expandable: true}, {Name: "rigid", Default: true}},
}

func (m model) story() story {
	t := story{}.masters(m.masters).systemNodes(m.systems).systemS3Nodes(m.s3s).classes(classSets[m.classes]...).storageClass(m.class)
	if m.gib > 0 {
		t = t.bucket(m.gib)
	}
	if m.mode > 0 {
		t = t.highAvailability(m.mode == 2)
	}
	if m.global > 0 {
		t = t.globalHighAvailability(m.global == 2)
	}
	if m.plane {
		o := ObservedPlane{ID: FirstPlane, Facts: m.facts, Known: true, TemplateBytes: m.template, Progress: m.progress}
		for i, c := range m.claims {
			if c.exists {
				o.Claims = append(o.Claims, c.observed(i, m.facts.StorageClass))
			}
		}
		t.c.Planes = append(t.c.Planes, o)
	}
	return t
}

func (c modelClaim) observed(i int, class string) Claim {
	seen := Claim{
		Name: fmt.Sprintf("data-garage-a-%d", i), Class: class, Bytes: c.bytes, Capacity: c.capacity, Bound: true, Up: c.up,
		Full: c.full, FullBytes: c.capacity,
	}
	if c.fails {
		seen.Failure = "no room"
	}
	return seen
}

// events are what people and machines do.
var events = map[string]func(*model){
	"a master comes":           func(m *model) { m.masters++ },
	"a master goes":            func(m *model) { m.masters = max(m.masters-1, 0) },
	"a node gets the role":     func(m *model) { m.s3s++ },
	"the role is taken away":   func(m *model) { m.s3s = 0 },
	"system nodes come":        func(m *model) { m.systems = 2 },
	"one replica is written":   func(m *model) { m.mode = 1 },
	"three replicas written":   func(m *model) { m.mode = 2 },
	"nothing is written":       func(m *model) { m.mode = 0 },
	"the platform says one":    func(m *model) { m.global = 1 },
	"a bucket":                 func(m *model) { m.gib = max(m.gib, 1) },
	"a large bucket":           func(m *model) { m.gib = 40 },
	"the buckets go":           func(m *model) { m.gib = 0 },
	"the classes go":           func(m *model) { m.classes = 0 },
	"a class that cannot grow": func(m *model) { m.classes, m.class = 2, "rigid" },
	"a class that can":         func(m *model) { m.classes, m.class = 1, "" },
	"a volume fills up":        func(m *model) { m.claims[0].full = m.claims[0].exists },
	"a volume fails to grow":   func(m *model) { m.claims[1].fails = m.claims[1].exists },
	"a replica falls silent":   func(m *model) { m.claims[2].up = false },
	"a claim is grown by hand": func(m *model) { m.claims[0].bytes += 7 * gibi * int64(b2i(m.claims[0].exists)) },
	"a claim is lost": func(m *model) {
		if m.facts.ReplicationFactor == faultTolerant && m.progress.Epoch == m.facts.Epoch && m.claims[0].holds && m.claims[1].holds {
			m.claims[2], m.progress.Proven = modelClaim{}, false
		}
	},
	"a replica is restarted too early": func(m *model) {
		if m.facts.ReplicationFactor == single && m.progress.Epoch < m.facts.Epoch && m.progress.Epoch > 0 {
			m.claims[m.facts.Survivor].holds, m.progress.Spoiled = false, m.facts.Epoch
		}
	},
	"the StatefulSet goes":      func(m *model) { m.template = 0 },
	"everything starts to work": func(m *model) { m.claims[1].fails, m.claims[2].up = false, m.claims[2].exists },
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// step carries one part of the plan out, as the hooks, Kubernetes, the storage and the controller do.
func (m model) step(p Plan, t story) model {
	if len(p.Planes) == 0 || p.Planes[0].Frozen != "" {
		return m
	}
	plane := p.Planes[0]
	if !m.plane {
		m.plane = true
		t.c.Planes = append(t.c.Planes, ObservedPlane{})
	}
	m = m.control(plane)
	m.facts = factsOf(plane)
	next := NextClaims(plane, t.c.Planes[0].Claims, t.c.Classes)
	for i := range m.claims {
		c := &m.claims[i]
		switch {
		case plane.OrdinalsStart <= i && i < plane.OrdinalsStart+plane.Replicas && !c.exists:
			*c = modelClaim{exists: true, up: true, bytes: m.template, capacity: m.template}
			c.holds = m.progress.Epoch == 0 && plane.Epoch == 1
			if m.template == 0 {
				*c = modelClaim{}
			}
		case c.exists && c.capacity < c.bytes && !c.fails && t.c.expandable(m.facts.StorageClass):
			c.capacity, c.full = c.bytes, false
		case slices.Contains(next, fmt.Sprintf("data-garage-a-%d", i)):
			c.bytes = plane.VolumeBytes
		}
	}
	m.template = plane.VolumeBytes
	return m
}

// control is the controller's part, from the plan that was carried out before: it restarts the replicas in a new epoch,
// proves what they hold, and deletes the volumes that are not needed.
func (m model) control(plane Plane) model {
	members := Facts{Replicas: m.facts.Replicas, ReplicationFactor: m.facts.ReplicationFactor, Survivor: m.facts.Survivor}.Members()
	up, held := len(members) > 0, false
	for _, i := range members {
		up = up && m.claims[i].exists && m.claims[i].up
		held = held || m.claims[i].holds
	}
	switch {
	case m.facts != factsOf(plane) || !up:
		m.progress.Proven = false
	case m.progress.Epoch < m.facts.Epoch && m.progress.Spoiled < m.facts.Epoch:
		m.progress.Epoch, m.progress.Serving = m.facts.Epoch, true
		if m.facts.ReplicationFactor == single {
			for i := range m.claims {
				m.claims[i].holds = m.claims[i].holds && i == m.facts.Survivor
			}
		}
	case held:
		m.progress.Whole, m.progress.Proven = m.facts.Epoch, plane.Survey
		for _, i := range members {
			m.claims[i].holds = true
		}
		for i := range m.claims {
			if m.facts.Replicas == single && i != m.facts.Survivor {
				m.claims[i] = modelClaim{}
			}
		}
	}
	return m
}

// settle goes on until nothing changes, and tells after how many steps that was.
func (m model) settle(t *testing.T) model {
	t.Helper()
	for range 25 {
		seen := m.story()
		p := seen.decide()
		m.holds(t, p)
		after := m.step(p, seen)
		for i := range m.claims {
			if after.claims[i].exists && after.claims[i].bytes < m.claims[i].bytes {
				t.Fatalf("a claim shrinks: %+v to %+v", m, after)
			}
		}
		if m.plane && (after.facts.StorageClass != m.facts.StorageClass || !neighbours(m.facts, after.facts)) {
			t.Fatalf("a fact changes: %+v to %+v", m, after)
		}
		if lost(m) < lost(after) {
			t.Fatalf("nobody with a role holds everything any more: %+v to %+v", m, after)
		}
		if after == m {
			return m
		}
		m = after
	}
	t.Fatalf("it does not come to rest: %+v", m)
	return m
}

// lost is 1 when data is lost: the copies that are left do not hold everything together. At three copies any two do.
func lost(m model) int {
	holders := 0
	for _, c := range m.claims {
		holders += b2i(c.exists && c.holds)
	}
	return b2i(m.plane && m.progress.Epoch > 0 && holders == 0)
}

// holds checks what must hold in every state. It does not use testify: it runs millions of times.
func (m model) holds(t *testing.T, p Plan) {
	t.Helper()
	tier := TierMasters
	switch {
	case m.s3s > 0:
		tier = TierSystemS3
	case m.systems > 0:
		tier = TierSystem
	}
	have := map[Tier]int{TierMasters: m.masters, TierSystem: m.systems, TierSystemS3: m.s3s}[tier]
	for _, plane := range p.Planes {
		switch {
		case plane.Tier != tier:
			t.Fatalf("F1: tier %s: %+v", plane.Tier, m)
		case p.Placement.OK != (have >= plane.Replicas):
			t.Fatalf("F3: %s: %+v", p.Placement.Message, m)
		case plane.VolumeBytes < volumeFor(m.gib*gibi):
			t.Fatalf("D1: %d: %+v", plane.VolumeBytes, m)
		}
	}
	if m.plane != (len(p.Planes) > 0) && (m.plane || m.gib == 0) {
		t.Fatalf("C1, C2: %d planes: %+v", len(p.Planes), m)
	}
	for _, c := range m.claims {
		if c.full && p.Capacity.OK {
			t.Fatalf("D3: %s: %+v", p.Capacity.Message, m)
		}
	}
}

// beginnings are all clusters of up to five nodes with all settings.
func beginnings() []model {
	var all []model
	for n := range 6 * 6 * 6 {
		m := model{masters: n % 6, systems: n / 6 % 6, s3s: n / 36}
		if m.masters+m.systems+m.s3s > 5 {
			continue
		}
		for s := range 3 * 2 * len(classSets) {
			m.mode, m.global, m.classes = s%3, s/3%2, s/6
			all = append(all, m)
		}
	}
	return all
}

func TestAnySequenceOfEventsComesToRest(t *testing.T) {
	seen := map[model]bool{}
	frontier := beginnings()
	for depth := range 3 {
		var reached []model
		for _, from := range frontier {
			for _, happens := range events {
				m := from
				happens(&m)
				if seen[m] || m.masters+m.systems+m.s3s > 5 {
					continue
				}
				seen[m] = true
				rest := m.settle(t)
				if !seen[rest] {
					seen[rest] = true
					reached = append(reached, rest)
				}
			}
		}
		t.Logf("after %d events: %d states at rest are new", depth+1, len(reached))
		frontier = reached
	}
	require.Greater(t, len(seen), 10_000, "the model is not led through what it is for")
}
