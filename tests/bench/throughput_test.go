package bench

import (
	"flag"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var (
	rounds  = flag.Int("rounds", 7, "rounds of a throughput measurement")
	only    = flag.String("only", "", "measure the door of this name only, to profile it")
	lasting = flag.Duration("lasting", 2*time.Second, "time of one door in one round")
)

// goal is the least ratio of a load by the gateway to the same by another door.
type goal struct {
	door  string
	ratio float64
}

func TestThroughput(t *testing.T) {
	kib, mib := 1<<10, 1<<20
	cases := []struct {
		load  load
		goals []goal
	}{
		{load{"GET 1 MiB", http.MethodGet, mib}, []goal{{"nginx", 1.3}, {"bare Garage", 0.75}}},
		{load{"GET 64 KiB", http.MethodGet, 64 * kib}, []goal{{"nginx", 0.95}}},
		{load{"PUT 1 MiB", http.MethodPut, mib}, []goal{{"nginx", 1}}},
		{load{"PUT 64 KiB", http.MethodPut, 64 * kib}, []goal{{"nginx", 1}}},
	}
	results := make([]map[string][]measured, len(cases))
	// Goals are judged when the doors are closed, so that a missed one does not show their logs.
	t.Run("doors", func(t *testing.T) {
		doors := openDoors(t)
		for i, c := range cases {
			t.Run(c.load.name, func(t *testing.T) {
				results[i] = compare(t, doors, c.load)
				report(t, doors, c.load, results[i])
			})
		}
	})
	for i, c := range cases {
		if results[i] == nil || *only != "" {
			continue // not asked for
		}
		for _, goal := range append(c.goals, goal{door: "nginx, tuned"}) {
			ratios := ratiosTo(results[i], goal.door)
			sayf("%-10s gateway / %-13s %.2f median (%.2f..%.2f), wanted %.2f; by CPU time %.2f\n", c.load.name,
				goal.door, median(ratios), slices.Min(ratios), slices.Max(ratios), goal.ratio, median(ratiosByCPU(results[i], goal.door)))
			assert.GreaterOrEqual(t, median(ratios), goal.ratio, "%s against %s", c.load.name, goal.door)
		}
	}
}

// compare measures the doors in turn, each round beginning with another.
func compare(t *testing.T, doors doors, l load) map[string][]measured {
	t.Helper()
	upload := load{l.name, http.MethodPut, l.size}
	for worker := range workers {
		upload.once(t, doors.bare, upload.signed(t, doors.bare, worker))
	}
	results := map[string][]measured{}
	all := doors.all()
	for round := range *rounds {
		for i := range all {
			d := all[(round+i)%len(all)]
			if *only != "" && d.name != *only {
				continue
			}
			results[d.name] = append(results[d.name], l.run(t, d, doors.garagePID, *lasting))
		}
	}
	return results
}

func report(t *testing.T, doors doors, l load, results map[string][]measured) {
	t.Helper()
	sayf("%s, %d at once, %d rounds of %s\n", l.name, workers, *rounds, *lasting)
	for _, d := range doors.all() {
		if len(results[d.name]) == 0 {
			continue
		}
		figure := func(of func(measured) float64) float64 {
			var values []float64
			for _, m := range results[d.name] {
				values = append(values, of(m))
			}
			return median(values)
		}
		sayf("  %-13s %7.0f requests/s %7.0f MiB/s   CPU per request: proxy %5.0f us, Garage %5.0f us, with the client %5.0f us\n", d.name,
			figure(measured.rate), figure(measured.rate)*float64(l.size)/(1<<20),
			figure(func(m measured) float64 { return m.perRequest(m.proxyCPU) }),
			figure(func(m measured) float64 { return m.perRequest(m.garageCPU) }),
			figure(func(m measured) float64 { return m.perRequest(m.allCPU) }))
	}
}

// ratiosTo compares within each round, so that what disturbs a round disturbs both.
func ratiosTo(results map[string][]measured, other string) []float64 {
	var ratios []float64
	for i, m := range results["gateway"] {
		ratios = append(ratios, m.rate()/results[other][i].rate())
	}
	return ratios
}

// ratiosByCPU is what the ratios would be if the CPU were all that counts.
func ratiosByCPU(results map[string][]measured, other string) []float64 {
	var ratios []float64
	for i, m := range results["gateway"] {
		o := results[other][i]
		ratios = append(ratios, o.perRequest(o.allCPU)/m.perRequest(m.allCPU))
	}
	return ratios
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
