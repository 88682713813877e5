package status

import "slices"

const mostEvents = 20

// EventView is a row.
type EventView struct {
	Level                   Level
	Kind                    string
	Object, Reason, Message string
	At                      When
	Count                   int
}

// events are the latest, newest first.
func events(w World) []EventView {
	sorted := slices.Clone(w.Events)
	slices.SortStableFunc(sorted, func(a, b Event) int { return b.At.Compare(a.At) })
	var views []EventView
	for _, e := range sorted[:min(mostEvents, len(sorted))] {
		v := EventView{Level: Good, Kind: "Normal", Object: e.Object, Reason: e.Reason, Message: e.Message, At: when(e.At, w.Now), Count: e.Count}
		if e.Warning {
			v.Level, v.Kind = Warn, "Warning"
		}
		views = append(views, v)
	}
	return views
}
