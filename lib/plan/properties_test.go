package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// anyStory is a story made of whatever the generator says, contradictions included.
func anyStory(r *rand.Rand) story {
	t := cluster().masters(r.IntN(4)).systemNodes(r.IntN(4) * r.IntN(2)).systemS3Nodes(r.IntN(4) * r.IntN(2)).workers(r.IntN(3))
	names := []string{"local", "fast", "gone", ""}
	t.c.Classes = nil
	for i := range r.IntN(3) {
		t.c.Classes = append(t.c.Classes, StorageClass{
			Name: names[i], Default: r.IntN(2) == 0, Expandable: r.IntN(2) == 0, Immediate: r.IntN(2) == 0, CreatedAt: "2026-01-01T00:00:00Z",
		})
	}
	for range r.IntN(5) {
		t = t.bucket(r.Int64N(300))
	}
	if r.IntN(3) == 0 {
		t = t.highAvailability(r.IntN(2) == 0)
	}
	t = t.storageClass(names[r.IntN(4)]).globalStorageClass(names[r.IntN(4)])
	if r.IntN(2) == 0 {
		t = t.store(1+2*r.IntN(2), names[r.IntN(3)], 10+r.Int64N(100)).claims(5 + r.Int64N(100))
		for i := range t.c.Planes[0].Claims {
			t = t.on(i, anyClaim(r))
		}
	}
	if len(t.c.Planes) > 0 && r.IntN(2) == 0 {
		o := &t.c.Planes[0]
		o.Epoch, o.Progress = 1+r.IntN(3), anyProgress(r)
		if o.ReplicationFactor == single {
			o.Replicas, o.Survivor = 1+2*r.IntN(2), r.IntN(3)
		}
	}
	if len(t.c.Planes) > 0 && r.IntN(5) == 0 {
		t = t.broken("a fact is unreadable", r.IntN(2) == 0)
	}
	if len(t.c.Planes) > 0 && r.IntN(3) == 0 {
		t = anySecondPlane(r, t, names)
	}
	if r.IntN(4) == 0 {
		t = t.phase(phases[r.IntN(len(phases))])
	}
	return t
}

// anySecondPlane adds a plane in whatever role, and the first one may have whatever role as well.
func anySecondPlane(r *rand.Rand, t story, names []string) story {
	roles := []Role{"", RoleActive, RoleTarget, RoleRetiring}
	t = t.second(roles[r.IntN(4)], names[r.IntN(3)], 1+2*r.IntN(2))
	if r.IntN(3) == 0 {
		t.c.Planes[0].Role = roles[r.IntN(4)]
	}
	for i := range t.c.Planes[1].Claims {
		anyClaim(r)(&t.c.Planes[1].Claims[i])
	}
	if r.IntN(5) == 0 {
		t.c.Planes[1].Unreadable, t.c.Planes[1].Known = "a fact is unreadable", r.IntN(2) == 0
	}
	if r.IntN(8) == 0 {
		t.c.Planes = t.c.Planes[1:]
	}
	return t
}

// anyClaim changes a claim in whatever way.
func anyClaim(r *rand.Rand) func(*Claim) {
	changes := []func(*Claim){
		func(*Claim) {}, filled, asked(5 + r.Int64N(200)), grown(5 + r.Int64N(200)), failing(5+r.Int64N(200), "no room."),
		func(c *Claim) { c.Bound, c.Capacity = false, 0 }, func(c *Claim) { c.Deleting = true }, func(c *Claim) { c.Up = false },
		func(c *Claim) { c.Full, c.FullBytes = true, math.MaxInt64 }, func(c *Claim) { c.AwaitsPod = true }, func(c *Claim) { c.Stale = true },
	}
	first, second := changes[r.IntN(len(changes))], changes[r.IntN(len(changes))]
	return func(c *Claim) { first(c); second(c) }
}

// shuffled is the same cluster seen in another order.
func shuffled(r *rand.Rand, c Cluster) Cluster {
	c = c.sorted()
	r.Shuffle(len(c.Nodes), func(i, j int) { c.Nodes[i], c.Nodes[j] = c.Nodes[j], c.Nodes[i] })
	r.Shuffle(len(c.Classes), func(i, j int) { c.Classes[i], c.Classes[j] = c.Classes[j], c.Classes[i] })
	r.Shuffle(len(c.Buckets), func(i, j int) { c.Buckets[i], c.Buckets[j] = c.Buckets[j], c.Buckets[i] })
	for _, o := range c.Planes {
		r.Shuffle(len(o.Claims), func(i, j int) { o.Claims[i], o.Claims[j] = o.Claims[j], o.Claims[i] })
	}
	return c
}

func factsOf(p Plane) Facts {
	return Facts{
		Role: p.Role, StorageClass: p.StorageClass, Replicas: p.Replicas, ReplicationFactor: p.ReplicationFactor, Epoch: p.Epoch, Survivor: p.Survivor,
	}
}

// neighbours tells whether a plane may go from one set of facts to another in one plan.
func neighbours(from, to Facts) bool {
	sameCopies := from.ReplicationFactor == to.ReplicationFactor && from.Epoch == to.Epoch && from.Survivor == to.Survivor
	switch {
	case from == to:
		return true
	case from.Replicas != to.Replicas:
		return sameCopies && to.ReplicationFactor == single
	default:
		return from.Replicas == faultTolerant && from.ReplicationFactor != to.ReplicationFactor && to.Epoch == from.Epoch+1
	}
}

// anyProgress is whatever a controller may tell.
func anyProgress(r *rand.Rand) Progress {
	return Progress{Epoch: r.IntN(4), Serving: r.IntN(2) == 0, Whole: r.IntN(4), Proven: r.IntN(2) == 0, Spoiled: r.IntN(4) * r.IntN(2)}
}

// carriedOut is the cluster after the plan became true.
func carriedOut(c Cluster, p Plan) Cluster {
	t := story{c: c}
	t.c.Planes = nil
	for _, plane := range p.Planes {
		t = t.store(plane.Replicas, plane.StorageClass, 0)
		o := &t.c.Planes[len(t.c.Planes)-1]
		o.ID, o.Facts, o.TemplateBytes, o.Progress = plane.ID, factsOf(plane), plane.VolumeBytes, Progress{}
		if i := indexOf(c.Planes, plane.ID); i >= 0 {
			o.Progress = c.Planes[i].Progress
		}
		for i := range o.Claims {
			o.Claims[i].Bytes, o.Claims[i].Capacity = plane.VolumeBytes, plane.VolumeBytes
		}
	}
	return t.c
}

func forAnyStory(t *testing.T, check func(*testing.T, *rand.Rand, story)) {
	t.Helper()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		check(t, r, anyStory(r))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	forAnyStory(t, func(t *testing.T, r *rand.Rand, s story) {
		require.Equal(t, s.decide(), Decide(shuffled(r, s.c), s.s))
	})
}

func TestInputIsLeftAlone(t *testing.T) {
	forAnyStory(t, func(t *testing.T, r *rand.Rand, s story) {
		c := shuffled(r, s.c)
		before := Cluster{Nodes: append([]Node{}, c.Nodes...), Classes: append([]StorageClass{}, c.Classes...), Buckets: append([]Bucket{}, c.Buckets...)}
		Decide(c, s.s)
		require.Equal(t, before.Nodes, append([]Node{}, c.Nodes...))
		require.Equal(t, before.Classes, append([]StorageClass{}, c.Classes...))
		require.Equal(t, before.Buckets, append([]Bucket{}, c.Buckets...))
	})
}

func TestWhatIsPinnedStays(t *testing.T) {
	forAnyStory(t, func(t *testing.T, _ *rand.Rand, s story) {
		p := s.decide()
		for _, o := range s.c.Planes {
			plane, printed := p.plane(o.ID)
			switch {
			case !printed:
				require.False(t, o.Known, "only a plane of which nothing is known is not printed")
			case !o.Known:
				require.Equal(t, RoleRetiring, plane.Role, "nothing is planned over a plane of which nothing is known")
			default:
				pinned(t, o, plane)
			}
		}
	})
}

// pinned checks that the plane is what was observed, or one step on.
func pinned(t *testing.T, o ObservedPlane, plane Plane) {
	t.Helper()
	want, got := o.Facts, factsOf(plane)
	want.Role, got.Role = "", ""
	require.Equal(t, want.StorageClass, got.StorageClass)
	if plane.Frozen != "" {
		require.Equal(t, want, got, "a fact that cannot be read freezes the others")
	}
	require.True(t, neighbours(want, got), "%+v to %+v is more than one step", want, got)
	require.GreaterOrEqual(t, plane.VolumeBytes, o.largest(), "sizes never fall")
	require.True(t, o.Unreadable == "" || plane.Frozen != "" || plane.Role == RoleRetiring)
}

// plane is the plane of the id.
func (p Plan) plane(id string) (Plane, bool) {
	for _, plane := range p.Planes {
		if plane.ID == id {
			return plane, true
		}
	}
	return Plane{}, false
}

func TestPlanIsStableOnceCarriedOut(t *testing.T) {
	forAnyStory(t, func(t *testing.T, _ *rand.Rand, s story) {
		c, p := s.c, s.decide()
		if p.Storage.Reason == ReasonStateUnreadable {
			return
		}
		// The shape may change with each plan for a while; then a plan that became true asks for nothing new.
		for range 4 {
			c = carriedOut(c, p)
			next := Decide(c, s.s)
			if sameFacts(p, next) {
				require.Equal(t, withoutWhy(p.Planes), withoutWhy(next.Planes))
				return
			}
			p = next
		}
		require.Fail(t, "the replicas change for ever")
	})
}

func sameFacts(p, next Plan) bool {
	return slices.EqualFunc(p.Planes, next.Planes, func(a, b Plane) bool { return a.ID == b.ID && factsOf(a) == factsOf(b) })
}

// withoutWhy is planes without their explanations, which tell where a plane comes from.
func withoutWhy(planes []Plane) []Plane {
	planes = append([]Plane{}, planes...)
	for i := range planes {
		planes[i].Reasons, planes[i].Survey = Reasons{}, false
	}
	return planes
}

func TestEveryVerdictSpeaks(t *testing.T) {
	forAnyStory(t, func(t *testing.T, _ *rand.Rand, s story) {
		p := s.decide()
		require.NotNil(t, p.Planes, "an empty list is printed as a list")
		for _, v := range []Verdict{p.Storage, p.Placement, p.Capacity, p.Migration} {
			require.NotEmpty(t, v.Reason)
			require.Regexp(t, `^[A-Z].*\.$|^a fact is unreadable$`, v.Message)
			require.NotRegexp(t, `\.\.|  |%!`, v.Message)
		}
	})
}

func TestVolumeSizes(t *testing.T) {
	cases := map[string]struct {
		reason string
		quotas []int64
		want   string
	}{
		"nothing":             {reason: "at least 10 GiB", quotas: nil, want: "10Gi"},
		"small":               {reason: "at least 10 GiB", quotas: []int64{1}, want: "10Gi"},
		"just 10 GiB":         {reason: "5 GiB + 10 % + 4 GiB is below 10 GiB", quotas: []int64{5 * gibi}, want: "10Gi"},
		"just above":          {reason: "6 GiB + 10 % + 4 GiB is above 10 GiB", quotas: []int64{6 * gibi}, want: "15Gi"},
		"an exact step":       {reason: "10 GiB + 1 GiB + 4 GiB is 15 GiB", quotas: []int64{10 * gibi}, want: "15Gi"},
		"one byte over":       {reason: "rounded up", quotas: []int64{10*gibi + 1}, want: "20Gi"},
		"a sum":               {reason: "quotas add up", quotas: []int64{10 * gibi, 10 * gibi, 10 * gibi}, want: "40Gi"},
		"a negative size":     {reason: "takes nothing away from the others", quotas: []int64{10 * gibi, -100 * gibi}, want: "15Gi"},
		"absurdly much":       {reason: "the sum does not overflow", quotas: []int64{math.MaxInt64, math.MaxInt64}, want: "2362232020Gi"},
		"absurdly many times": {reason: "the sum does not overflow", quotas: []int64{mostBytes, mostBytes, mostBytes, mostBytes, mostBytes}, want: "2362232020Gi"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := cluster().masters(1)
			for _, bytes := range c.quotas {
				s.c.Buckets = append(s.c.Buckets, Bucket{Bytes: bytes})
			}
			if len(c.quotas) == 0 {
				s = s.bucket(0)
			}
			require.Equal(t, c.want, s.decide().Planes[0].VolumeSize, c.reason)
		})
	}
}

func TestQuantity(t *testing.T) {
	for want, bytes := range map[string]int64{"10Gi": 10 * gibi, "1537Mi": 1537 * mebi, "1025": 1025, "0Gi": 0} {
		require.Equal(t, want, quantity(bytes))
	}
}

func TestTolerations(t *testing.T) {
	both := cluster().masters(3).systemNodes(1)
	both.c.Nodes[1].Labels = append(both.c.Nodes[1].Labels, SystemS3NodeLabel)
	cases := map[string]struct {
		reason string
		story  story
		want   []Toleration
	}{
		"role nodes":            {"F2: nodes set aside for the module or the platform", cluster().masters(3).systemNodes(3), dedicated()},
		"masters":               {"F2: their own taints too", cluster().masters(3), append(dedicated(), controlPlane()...)},
		"masters with the role": {"F2, F5: the role on a master is a way out, which must not end at its taint", both, append(dedicated(), controlPlane()...)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.story.bucket(1).decide().Planes[0].Tolerations, c.reason)
		})
	}
}

func TestGrowthIsOneStepAtATime(t *testing.T) {
	forAnyStory(t, func(t *testing.T, r *rand.Rand, s story) {
		p := s.decide()
		if len(s.c.Planes) == 0 || len(p.Planes) == 0 {
			return
		}
		claims := s.c.Planes[0].Claims
		next := NextClaims(p.Planes[0], claims, s.c.Classes)
		require.LessOrEqual(t, len(next), 1)
		for _, c := range claims {
			if c.unfinished() && c.Up && c.Failure == "" {
				require.Empty(t, next, "a growth that is under way is waited for")
			}
			if len(next) == 1 && c.Name == next[0] {
				require.Less(t, c.Bytes, p.Planes[0].VolumeBytes, "a claim only grows")
				require.True(t, c.Bound && !c.Deleting && s.c.expandable(c.Class), "only what can grow is asked to")
			}
		}
	})
}
