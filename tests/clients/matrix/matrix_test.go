package matrix

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/clients/roster"
)

func TestParse(t *testing.T) {
	cells := Parse("noise\nput\tok\t1ms\nget\tfailed\twhat\tever\nput\tmaybe\tno\n")
	require.Equal(t, map[string]Cell{"put": {OK: true, Text: "1ms"}, "get": {Text: "what\tever"}}, cells)
}

func TestPrint(t *testing.T) {
	all := func(but string, cell *Cell) map[string]Cell {
		cells := map[string]Cell{}
		for _, operation := range roster.Operations {
			cells[operation] = Cell{OK: true}
		}
		delete(cells, but)
		if cell != nil {
			cells[but] = *cell
		}
		return cells
	}
	cannot := map[string]string{"copy": "it does not copy"}
	for name, c := range map[string]struct {
		reason string
		row    Row
		fine   bool
		says   string
	}{
		"whole":      {reason: "everything worked", row: Row{Cells: all("", nil)}, fine: true, says: "ok"},
		"failure":    {reason: "its reason is told", row: Row{Cells: all("get", &Cell{Text: "broken"})}, says: "get: broken"},
		"silence":    {reason: "an operation that was not tried is no success", row: Row{Cells: all("get", nil)}, says: "said nothing"},
		"impossible": {reason: "it carries its sentence", row: Row{Cells: all("copy", nil), Client: roster.Client{Cannot: cannot}}, fine: true, says: "it does not copy"},
		"stale":      {reason: "a sentence that is no longer true", row: Row{Cells: all("", nil), Client: roster.Client{Cannot: cannot}}, says: "although"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := Print(&out, []Row{c.row})
			require.Equal(t, c.fine, err == nil, c.reason)
			require.Contains(t, out.String(), c.says, c.reason)
		})
	}
}
