package layout

// Speed is how fast a node copies blocks that it lacks.
type Speed struct {
	Workers     int // at once
	Tranquility int // how many times as long as it works a worker rests
}

// ScrubCommand is what a node's check of all blocks is told.
type ScrubCommand int

// The commands.
const (
	LeaveScrub ScrubCommand = iota
	PauseScrub
	ResumeScrub
)

const scrubWorker = "Block scrub worker"

// Tune is how fast nodes should copy: with all they have while a replica is being filled, since until that is done the
// loss of another one is a loss of redundancy that nobody planned, and as Garage comes otherwise, so that clients are
// not slowed down. A check of all blocks, which reads the disks that are copied from, waits meanwhile. It follows from
// what is seen, so that whoever comes next puts it back.
func Tune(filling bool, workers []Worker) (Speed, ScrubCommand) {
	command := LeaveScrub
	for _, w := range workers {
		switch {
		case w.Name != scrubWorker:
		case filling && w.State != idle && !w.Paused:
			command = PauseScrub
		case !filling && w.Paused:
			command = ResumeScrub
		}
	}
	if filling {
		return Speed{Workers: 4}, command //nolint:mnd // of at most 8; more of them do not copy faster on one disk
	}
	return Speed{Workers: 1, Tranquility: 2}, command //nolint:mnd // Garage's own values
}

// Progress is how far a replica that is being filled is.
type Progress struct {
	Objects, ObjectsTotal int
	Blocks, BlocksTotal   int
}

const objectTable = "object"

// Fill compares what a replica has with what the fullest of the others has; false when there is nothing to compare.
func Fill(pod string, accounts []Account) (Progress, bool) {
	var p Progress
	known := false
	for _, a := range accounts {
		if a.Silence != "" {
			return Progress{}, false
		}
		objects := 0
		for _, t := range a.Tables {
			if t.Name == objectTable {
				objects = t.Items
			}
		}
		held := max(0, a.Blocks-a.Queue)
		if a.Name == pod {
			p.Objects, p.Blocks, known = objects, held, true
			continue
		}
		p.ObjectsTotal, p.BlocksTotal = max(p.ObjectsTotal, objects), max(p.BlocksTotal, a.Blocks)
	}
	p.Objects, p.Blocks = min(p.Objects, p.ObjectsTotal), min(p.Blocks, p.BlocksTotal)
	return p, known && len(accounts) > 1
}

// Percent of the part that is behind most.
func (p Progress) Percent() int {
	const all = 100
	percent := all
	for _, part := range [][2]int{{p.Objects, p.ObjectsTotal}, {p.Blocks, p.BlocksTotal}} {
		if part[1] > 0 {
			percent = min(percent, part[0]*all/part[1])
		}
	}
	return percent
}
