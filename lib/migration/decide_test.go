package migration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/plan"
)

// at is a migration from a to b with three gateways, in which nothing stands in the way of leaving the phase.
func at(phase plan.Phase) Facts {
	f := Facts{
		State:    &plan.MigrationState{Source: "a", Target: "b", Phase: phase},
		Planes:   []Plane{{ID: "a", Role: plan.RoleActive}, {ID: "b", Role: plan.RoleTarget}},
		Target:   Readiness{Whole: true},
		Selected: "a",
		Journal:  Journal{ID: "j", Runs: map[string]bool{}},
		Work:     Work{Copied: true, Verified: true},
	}
	for _, name := range []string{"a-0", "a-1", "a-2"} {
		f.Doors = append(f.Doors, Door{Name: name, Run: name + "/0", Answers: true})
		f.Journal.Runs[name+"/0"] = true
	}
	if phase == plan.PhaseHolding || phase == plan.PhaseFencing {
		f.Hold = Hold{Held: true, For: time.Second, Drained: true}
	}
	if phase == plan.PhaseFencing {
		f = f.fenced("")
	}
	if phase == plan.PhaseSwitched || phase == plan.PhaseRetiring {
		f = f.fenced("https://10.0.0.1:443").roles(plan.RoleRetiring, plan.RoleActive)
		f.Selected, f.SelectedFor = "b", LeaveLeast
	}
	return f
}

func (f Facts) fenced(to string) Facts {
	for i := range f.Doors {
		f.Doors[i].Fenced, f.Doors[i].To = true, to
	}
	return f
}

func (f Facts) roles(a, b plan.Role) Facts {
	f.Planes = []Plane{{ID: "a", Role: a}, {ID: "b", Role: b}}
	return f
}

func (f Facts) but(change func(*Facts)) Facts {
	change(&f)
	return f
}

func lost(f *Facts)      { f.State = nil }
func noJournal(f *Facts) { f.Journal = Journal{} }
func overflow(f *Facts)  { f.Journal.Broken = "overflow" }
func restarted(f *Facts) { f.Doors[1].Run = "a-1/1" }
func vanished(f *Facts)  { f.Doors[1].Run, f.Doors[1].Answers = "", false }
func silent(f *Facts)    { f.Doors[1].Answers, f.Doors[1].Fenced, f.Doors[1].To = false, false, "" }
func another(f *Facts) {
	f.Doors = append(f.Doors, Door{Name: "a-3", Run: "a-3/0", Answers: true, Fenced: true})
}
func unready(f *Facts)        { f.Target = Readiness{Awaited: "b-0 to be ready"} }
func running(f *Facts)        { f.Work = Work{Running: true} }
func nothingDone(f *Facts)    { f.Work = Work{} }
func written(f *Facts)        { f.Hold.Drained = false }
func onTheirWay(f *Facts)     { f.Hold.Held = false }
func tooLong(f *Facts)        { f.Hold.For, f.Hold.Drained = HoldMost+1, false }
func oneUnfenced(f *Facts)    { f.Doors[2].Fenced = false }
func oneStays(f *Facts)       { f.Doors[2].To = "" }
func abandoned(f *Facts)      { *f = f.roles(plan.RoleActive, plan.RoleRetiring) }
func targetGone(f *Facts)     { f.Planes = f.Planes[:1] }
func sourceGone(f *Facts)     { f.Planes = f.Planes[1:] }
func frozen(f *Facts)         { f.Planes[0].Frozen = true }
func uploads(f *Facts)        { f.Uploads = Uploads{Count: 2, Waited: time.Minute} }
func oldUploads(f *Facts)     { f.Uploads = Uploads{Count: 2, Waited: UploadsMost} }
func notPlanned(f *Facts)     { *f = f.roles(plan.RoleActive, plan.RoleTarget) }
func oldService(f *Facts)     { f.Selected = "a" }
func unknownService(f *Facts) { f.Selected = "" }

func TestNext(t *testing.T) {
	const preparing, copying, verifying, holding, fencing, switched, retiring = plan.PhasePreparing, plan.PhaseCopying, plan.PhaseVerifying,
		plan.PhaseHolding, plan.PhaseFencing, plan.PhaseSwitched, plan.PhaseRetiring
	for name, c := range map[string]struct {
		facts Facts
		want  Step
	}{
		"no migration":        {at(copying).but(lost).but(targetGone), Step{Kind: Rest}},
		"a target is planned": {at(copying).but(lost), Step{Kind: Record, Phase: preparing}},
		"the state is lost and a gateway is fenced":     {at(fencing).but(lost).but(oneUnfenced), Step{Kind: Record, Phase: fencing}},
		"the state is lost and a gateway forwards":      {at(switched).but(lost).but(notPlanned), Step{Kind: Record, Phase: switched}},
		"the state is lost and a gateway is silent":     {at(copying).but(lost).but(silent), Step{Kind: Await}},
		"the state is lost while the source retires":    {at(retiring).but(lost), Step{Kind: Record, Phase: switched}},
		"the state is lost, a retiring plane is silent": {at(copying).but(lost).but(abandoned).but(silent), Step{Kind: Await}},
		"the state is lost, a target was abandoned":     {at(copying).but(lost).but(abandoned), Step{Kind: Record, Phase: preparing}},
		"the state is lost in the middle of deleting":   {at(retiring).but(lost).but(func(f *Facts) { f.Deleting = true }), Step{Kind: Delete, Plane: "a"}},
		"a plane cannot be read":                        {at(retiring).but(frozen), Step{Kind: Await}},

		"a plane cannot be read while holding":         {at(holding).but(frozen), Step{Kind: LetGo, Phase: verifying}},
		"a plane cannot be read while fencing":         {at(fencing).but(frozen), Step{Kind: Record, Phase: switched}},
		"a plane cannot be read, a gateway to forward": {at(switched).but(frozen).but(oneStays), Step{Kind: Forward}},

		"called back while preparing":  {at(preparing).but(abandoned), Step{Kind: Delete, Plane: "b"}},
		"called back while copying":    {at(copying).but(abandoned).but(running), Step{Kind: Delete, Plane: "b"}},
		"called back while holding":    {at(holding).but(abandoned), Step{Kind: Delete, Plane: "b"}},
		"called back after the fence":  {at(fencing).but(abandoned), Step{Kind: Record, Phase: switched}},
		"the abandoned target is gone": {at(copying).but(targetGone), Step{Kind: Forget}},
		"the target is gone, fenced":   {at(fencing).but(targetGone), Step{Kind: Await}},

		"the target is not ready":                 {at(preparing).but(unready), Step{Kind: Await}},
		"the target is ready":                     {at(preparing), Step{Kind: Record, Phase: copying}},
		"no journal":                              {at(copying).but(noJournal).but(nothingDone), Step{Kind: Copy}},
		"no journal, a gateway is silent":         {at(copying).but(noJournal).but(silent), Step{Kind: Await}},
		"copying":                                 {at(copying).but(running), Step{Kind: Await}},
		"a gateway is restarted while copying":    {at(copying).but(running).but(restarted), Step{Kind: Copy}},
		"a replica vanishes while copying":        {at(copying).but(running).but(vanished), Step{Kind: Await}},
		"a replica is new while copying":          {at(copying).but(running).but(another), Step{Kind: Copy}},
		"a journal overflows while copying":       {at(copying).but(running).but(overflow), Step{Kind: Copy}},
		"the pass failed":                         {at(copying).but(nothingDone), Step{Kind: Copy}},
		"copied":                                  {at(copying), Step{Kind: Record, Phase: verifying}},
		"not verified":                            {at(verifying).but(nothingDone), Step{Kind: Verify}},
		"verifying":                               {at(verifying).but(running), Step{Kind: Await}},
		"a gateway is restarted while verifying":  {at(verifying).but(running).but(restarted), Step{Kind: Record, Phase: copying}},
		"an object cannot be read back":           {at(verifying).but(func(f *Facts) { f.Work.Mismatch = "x" }), Step{Kind: Await}},
		"verified, a gateway is silent":           {at(verifying).but(silent), Step{Kind: Await}},
		"verified, uploads are unfinished":        {at(verifying).but(uploads), Step{Kind: Await}},
		"verified, uploads were awaited":          {at(verifying).but(oldUploads), Step{Kind: Record, Phase: holding}},
		"verified, the last hold was too long":    {at(verifying).but(func(f *Facts) { f.Hold.Resting = 1 }), Step{Kind: Await}},
		"verified, the journal is far behind":     {at(verifying).but(func(f *Facts) { f.Journal.Behind = true }), Step{Kind: Await}},
		"verified, the target lost a replica":     {at(verifying).but(unready), Step{Kind: Await}},
		"verified":                                {at(verifying), Step{Kind: Record, Phase: holding}},
		"holding, writes are on their way":        {at(holding).but(onTheirWay), Step{Kind: HoldOn}},
		"holding, nothing is written":             {at(holding).but(written), Step{Kind: Settle}},
		"holding for too long":                    {at(holding).but(tooLong), Step{Kind: LetGo, Phase: verifying}},
		"holding, a gateway is silent":            {at(holding).but(silent), Step{Kind: LetGo, Phase: verifying}},
		"holding, a gateway is restarted":         {at(holding).but(restarted), Step{Kind: LetGo, Phase: copying}},
		"holding, a new leader":                   {at(holding).but(noJournal).but(nothingDone), Step{Kind: LetGo, Phase: copying}},
		"holding, the target lost a replica":      {at(holding).but(unready), Step{Kind: LetGo, Phase: verifying}},
		"holding, an upload was begun meanwhile":  {at(holding).but(uploads), Step{Kind: LetGo, Phase: verifying}},
		"holding, uploads were awaited":           {at(holding).but(oldUploads), Step{Kind: Record, Phase: fencing}},
		"holding, everything is there":            {at(holding), Step{Kind: Record, Phase: fencing}},
		"fencing, a gateway is not fenced":        {at(fencing).but(oneUnfenced), Step{Kind: Fence}},
		"fencing, a gateway is silent":            {at(fencing).but(silent), Step{Kind: Fence}},
		"fencing, writes are on their way":        {at(fencing).but(onTheirWay), Step{Kind: Fence}},
		"fencing, the rest":                       {at(fencing).but(written), Step{Kind: Settle}},
		"fencing, a new leader":                   {at(fencing).but(noJournal).but(nothingDone), Step{Kind: Again}},
		"fencing, a replica with an empty volume": {at(fencing).but(restarted), Step{Kind: Again}},
		"fencing, comparing again":                {at(fencing).but(noJournal).but(running), Step{Kind: Await}},
		"fencing, compared again":                 {at(fencing).but(noJournal).but(func(f *Facts) { f.Work = Work{PassedFenced: true} }), Step{Kind: Record, Phase: switched}},
		"fencing, a full pass that ended before":  {at(fencing).but(noJournal), Step{Kind: Again}},
		"fenced":                                  {at(fencing), Step{Kind: Record, Phase: switched}},
		"switched, a gateway does not forward":    {at(switched).but(oneStays), Step{Kind: Forward}},
		"switched, a gateway is silent":           {at(switched).but(silent), Step{Kind: Forward}},
		"switched, the plan lags":                 {at(switched).but(notPlanned), Step{Kind: Await}},
		"switched, the Service lags":              {at(switched).but(oldService), Step{Kind: Await}},
		"switched, the target lost a replica":     {at(switched).but(unready), Step{Kind: Await}},
		"switched":                                {at(switched), Step{Kind: Record, Phase: retiring}},
		"retiring":                                {at(retiring), Step{Kind: Delete, Plane: "a"}},
		"retiring, the target lost a replica":     {at(retiring).but(unready), Step{Kind: Await}},
		"retiring, a Pod is still there":          {at(retiring).but(silent), Step{Kind: Await}},
		"retiring, the plan lags":                 {at(retiring).but(notPlanned), Step{Kind: Await}},
		"retired":                                 {at(retiring).but(sourceGone), Step{Kind: Forget}},
		"a phase of another version":              {at("Flying"), Step{Kind: Await}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Next(c.facts)
			assert.Equal(t, c.want.Kind.String(), got.Kind.String(), "%+v", got)
			assert.Equal(t, c.want.Phase, got.Phase)
			assert.Equal(t, c.want.Plane, got.Plane)
			assert.True(t, got.Why != "" || got.Kind == Rest || got.Kind == Await, "every step has a reason")
			assert.False(t, got.Kind == Await && got.Awaited == "" && !c.facts.Work.Running, "it is told what is waited for")
		})
	}
}

// The guard before the source is deleted: a row for each way to be fooled.
func TestGuard(t *testing.T) {
	require.Empty(t, at(plan.PhaseRetiring).Guard())
	gone := at(plan.PhaseRetiring).but(func(f *Facts) {
		for i := range f.Doors {
			f.Doors[i] = Door{Name: f.Doors[i].Name, Gone: true}
		}
	})
	require.Empty(t, gone.Guard())
	for name, f := range map[string]Facts{
		"nothing is persisted":                        at(plan.PhaseRetiring).but(lost),
		"the switch is not persisted":                 at(plan.PhaseFencing),
		"the target lacks a replica":                  at(plan.PhaseRetiring).but(unready),
		"clients are sent to the source":              at(plan.PhaseRetiring).but(oldService),
		"clients were sent to the target just now":    at(plan.PhaseRetiring).but(func(f *Facts) { f.SelectedFor = LeaveLeast - 1 }),
		"nobody knows where clients are sent":         at(plan.PhaseRetiring).but(unknownService),
		"a gateway does not forward":                  at(plan.PhaseRetiring).but(oneStays),
		"a gateway is silent":                         at(plan.PhaseRetiring).but(silent),
		"a Pod is away that comes back":               at(plan.PhaseRetiring).but(vanished),
		"the source's Pods are gone, the target down": gone.but(unready),
	} {
		assert.NotEmpty(t, f.Guard(), name)
	}
}

func TestGap(t *testing.T) {
	require.Empty(t, at(plan.PhaseCopying).Gap())
	require.Empty(t, at(plan.PhaseCopying).but(silent).Gap(), "one that does not answer for once has kept its journal")
	for name, change := range map[string]func(*Facts){
		"no journal": noJournal, "it overflowed": overflow, "a gateway was restarted": restarted,
		"a replica is gone": vanished, "a replica is new": another, "the source has no gateway": func(f *Facts) { f.Doors = nil },
	} {
		assert.NotEmpty(t, at(plan.PhaseCopying).but(change).Gap(), name)
	}
}

func TestTold(t *testing.T) {
	s := plan.MigrationState{Phase: plan.PhaseCopying}
	Figures{Objects: 1000, Copied: 456, Bytes: 10 << 30, CopiedBytes: 5 << 30, For: 100 * time.Second}.Put(&s)
	assert.Equal(t, int64(450), s.Copied, "coarse")
	assert.Equal(t, int64(120), s.SecondsLeft)
	s.Awaited = "a"
	assert.Equal(t, "45 % of 1000 objects, 5.0 GiB of 10 GiB, 48 MiB/s, about 2m left. It waits for a.", Told(s))
	assert.Equal(t, "It waits for a.", Told(plan.MigrationState{Phase: plan.PhaseSwitched, Awaited: "a"}))
	assert.Empty(t, Told(plan.MigrationState{Phase: plan.PhaseRetiring}))
	young := plan.MigrationState{}
	Figures{Objects: 10, Copied: 5, For: time.Second}.Put(&young)
	assert.Zero(t, young.SecondsLeft, "too early to tell")
}
