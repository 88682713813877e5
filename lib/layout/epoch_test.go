package layout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running are three Pods that run in the epochs; 0 is none, a negative one is on its way out. The second one stays when
// copies are given up.
func runningIn(epochs ...int) []Runner {
	var all []Runner
	for i, epoch := range epochs {
		r := Runner{Pod: string(rune('a' + i)), Epoch: max(epoch, -epoch), Exists: epoch > 0, Runs: epoch > 0, Up: epoch > 0, Keeps: i == 1}
		all = append(all, r)
	}
	return all
}

func TestCrossOver(t *testing.T) {
	still := func(runners []Runner, i int) []Runner { runners[i].Runs, runners[i].Up = false, false; return runners }
	up := func(runners []Runner, i int) []Runner { runners[i].Up = true; return runners }
	cases := map[string]struct {
		reason  string
		gives   bool
		handed  int
		runners []Runner
		want    CrossKind
		pods    []string
	}{
		"all there":       {"nothing to do", false, 0, runningIn(2, 2, 2), Arrived, nil},
		"a Pod is away":   {"it comes back in this epoch", false, 0, runningIn(2, 0, 2), Arrived, nil},
		"one ends slowly": {"a Pod on a node that is lost never ends", true, 2, runningIn(-1, 2, 2), Arrived, nil},

		"more copies":                       {"all at once", false, 0, runningIn(1, 1, 1), Cross, []string{"a", "b", "c"}},
		"more copies, one has no Pod":       {"no layout without it", false, 0, runningIn(1, 1, 0), Linger, nil},
		"more copies, one does not run":     {"no layout without it", false, 0, still(runningIn(1, 1, 1), 2), Linger, nil},
		"more copies, killed in the middle": {"it goes on", false, 0, runningIn(2, 1, -1), Cross, []string{"b"}},
		"more copies after a mishap":        {"from two epochs into a third", false, 0, still(runningIn(1, 1, 1), 0)[1:], Cross, []string{"b", "c"}},

		"fewer copies":                          {"first everything to the one that stays", true, 0, runningIn(1, 1, 1), HandOver, nil},
		"fewer, handed over and nothing done":   {"a word of before a crash: writes went on since", true, 2, runningIn(1, 1, 1), HandOver, nil},
		"fewer, an old word":                    {"of another epoch", true, 1, runningIn(1, 1, 1), HandOver, nil},
		"fewer, one is lost for good":           {"two have everything together", true, 0, runningIn(1, 1, 0), HandOver, nil},
		"fewer, handed over, one is lost":       {"whatever the others acknowledge reaches both", true, 2, runningIn(1, 1, 0), Cross, []string{"a"}},
		"fewer, the first is stopped":           {"the others first", true, 2, runningIn(-1, 1, 1), Cross, []string{"c"}},
		"fewer, the others stop":                {"two could acknowledge without it", true, 2, up(runningIn(-1, 1, -1), 0), Linger, nil},
		"fewer, the others are gone":            {"alone it acknowledges nothing", true, 2, runningIn(0, 1, 2), Cross, []string{"b"}},
		"fewer, one crossed too early":          {"it may have had what was acknowledged", true, 0, runningIn(2, 1, 1), Spoil, nil},
		"fewer, the one that stays crossed":     {"the others went on without it", true, 0, runningIn(1, 2, 1), Spoil, nil},
		"fewer, the one that stays has no Pod":  {"it will be made in the new epoch", true, 0, runningIn(1, 0, 1), Spoil, nil},
		"fewer, it crossed after the hand-over": {"the others may have gone on", true, 2, runningIn(1, 2, 1), Spoil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := CrossOver(Crossing{Epoch: 2, GivesUp: c.gives, Handed: c.handed, Runners: c.runners})
			require.Equal(t, c.want, got.Kind, "%s: %s", c.reason, got.Message)
			require.Equal(t, c.pods, got.Pods, c.reason)
			require.Equal(t, c.want == Arrived, got.Message == "", "every step but the last says what it does")
		})
	}
}

// TestNothingIsAcknowledgedWithoutTheOneThatStays walks through every order in which Pods may end and come back, and a
// controller may die, once the tables are equal: two old replicas never run without the one that stays.
func TestNothingIsAcknowledgedWithoutTheOneThatStays(t *testing.T) {
	type state struct{ epochs [3]int }
	seen := map[state]bool{}
	var walk func(s state)
	walk = func(s state) {
		if seen[s] {
			return
		}
		seen[s] = true
		old := func(i int) bool { return s.epochs[i] == 1 || s.epochs[i] == -1 }
		require.False(t, old(0) && old(2) && !old(1), "%v", s)
		runners := runningIn(s.epochs[:]...)
		for i := range runners {
			runners[i].Up = old(i)
		}
		step := CrossOver(Crossing{Epoch: 2, GivesUp: true, Handed: 2, Runners: runners})
		if step.Kind == HandOver { // it is done, and the controller lives long enough to stop one
			for _, i := range []int{0, 2} {
				after := s
				after.epochs[i] = -1
				walk(after)
			}
		}
		for i, r := range runners {
			after := s
			switch {
			case step.Kind == Cross && len(step.Pods) > 0 && r.Pod == step.Pods[0]:
				after.epochs[i] = -1
			case s.epochs[i] == -1:
				after.epochs[i] = 0
			case s.epochs[i] == 0:
				after.epochs[i] = 2
			}
			walk(after)
		}
	}
	walk(state{[3]int{1, 1, 1}})
	require.True(t, seen[state{[3]int{2, 2, 2}}], "it gets there")
}

func TestEqualIsHalfTheWay(t *testing.T) {
	require.False(t, Equal(Proof{}, Evidence{Now: time.Now()}).Open, "no node is known")
}
