package plan

import "fmt"

// story builds a cluster and its settings, step by step, as a test tells them.
type story struct {
	c Cluster
	s Settings
}

// cluster begins with one StorageClass, the default one, as a cluster usually has.
func cluster() story {
	return story{c: Cluster{Classes: []StorageClass{{Name: "local", Default: true, CreatedAt: "2026-01-01T00:00:00Z", Expandable: true}}}}
}

func (t story) nodes(n int, prefix, label string) story {
	for i := range n {
		t.c.Nodes = append(t.c.Nodes, Node{Name: fmt.Sprintf("%s-%d", prefix, i), Labels: []string{label}})
	}
	return t
}

// masters also tells the platform's own finding about the control plane.
func (t story) masters(n int) story {
	t.s.ControlPlaneHighlyAvailable = n > 1
	return t.nodes(n, "master", MasterNodeLabel)
}

func (t story) systemNodes(n int) story   { return t.nodes(n, "system", SystemNodeLabel) }
func (t story) systemS3Nodes(n int) story { return t.nodes(n, "s3", SystemS3NodeLabel) }

func (t story) workers(n int) story {
	for i := range n {
		t.c.Nodes = append(t.c.Nodes, Node{Name: fmt.Sprintf("worker-%d", i)})
	}
	return t
}

func (t story) classes(classes ...StorageClass) story {
	t.c.Classes = classes
	return t
}

// bucket adds a SystemBucket with a quota of so many GiB.
func (t story) bucket(gib int64) story {
	name := fmt.Sprintf("bucket-%d", len(t.c.Buckets))
	t.c.Buckets = append(t.c.Buckets, Bucket{Namespace: "d8-test", Name: name, Bytes: gib * gibi})
	return t
}

func (t story) highAvailability(on bool) story {
	t.s.HighAvailability = &on
	return t
}

func (t story) globalHighAvailability(on bool) story {
	t.s.GlobalHighAvailability = &on
	return t
}

func (t story) storageClass(name string) story {
	t.s.StorageClass = name
	return t
}

func (t story) globalStorageClass(name string) story {
	t.s.GlobalStorageClass = name
	return t
}

// store adds a running plane with volumes of so many GiB.
func (t story) store(replicas int, class string, gib int64) story {
	o := ObservedPlane{
		ID: FirstPlane, Known: true, TemplateBytes: gib * gibi,
		Facts:    Facts{StorageClass: class, Replicas: replicas, ReplicationFactor: replicas, Epoch: 1},
		Progress: Progress{Epoch: 1, Serving: true},
	}
	for i := range replicas {
		o.Claims = append(o.Claims, Claim{
			Name: fmt.Sprintf("data-garage-a-%d", i), Class: class, Bytes: gib * gibi, Capacity: gib * gibi, Bound: true, Up: true,
		})
	}
	t.c.Planes = append(t.c.Planes, o)
	return t
}

// second adds a plane b beside the store, whose volumes are as large.
func (t story) second(role Role, class string, replicas int) story {
	return t.secondOf(t.c.Planes[0].TemplateBytes/gibi, role, class, replicas)
}

func (t story) secondOf(gib int64, role Role, class string, replicas int) story {
	t = t.store(replicas, class, gib)
	o := &t.c.Planes[len(t.c.Planes)-1]
	o.ID, o.Role = "b", role
	for i := range o.Claims {
		o.Claims[i].Name = fmt.Sprintf("data-garage-b-%d", i)
	}
	return t
}

// phase is the controller's word on a move from plane a to plane b.
func (t story) phase(p Phase) story {
	t.c.Migration = &MigrationState{Source: FirstPlane, Target: "b", Phase: p}
	return t
}

// progress is what the controller tells of the store.
func (t story) progress(p Progress) story {
	t.c.Planes[0].Progress = p
	return t
}

// broken makes a fact of the store unreadable; known tells whether the others are known.
func (t story) broken(why string, known bool) story {
	o := &t.c.Planes[0]
	o.Unreadable, o.Known = why, known
	return t
}

// on changes the claim of one replica.
func (t story) on(replica int, change func(*Claim)) story {
	change(&t.c.Planes[0].Claims[replica])
	return t
}

// claims of the store ask for and have so many GiB, whatever its StatefulSet asks for.
func (t story) claims(gib int64) story {
	for i := range t.c.Planes[0].Claims {
		t = t.on(i, func(c *Claim) { c.Bytes, c.Capacity = gib*gibi, gib*gibi })
	}
	return t
}

// template of the StatefulSet asks for so many GiB; 0 is no StatefulSet.
func (t story) template(gib int64) story {
	t.c.Planes[0].TemplateBytes = gib * gibi
	return t
}

func filled(c *Claim) { c.Full, c.FullBytes = true, c.Capacity }

func grown(gib int64) func(*Claim) {
	return func(c *Claim) { c.Bytes, c.Capacity = gib*gibi, gib*gibi }
}

// asked is asked to grow to so many GiB and has not done it yet.
func asked(gib int64) func(*Claim) {
	return func(c *Claim) { c.Bytes = gib * gibi }
}

func failing(gib int64, why string) func(*Claim) {
	return func(c *Claim) { c.Bytes, c.Failure = gib*gibi, why }
}

func (t story) decide() Plan { return Decide(t.c, t.s) }
