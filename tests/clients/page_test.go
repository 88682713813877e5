package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/clients/roster"
)

// blocks are the code blocks of a page in a language.
func blocks(page, language string) []string {
	var found []string
	for _, rest := range strings.Split(page, "\n```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(rest, "\n```")
		found = append(found, code+"\n")
	}
	return found
}

func TestThePageShowsWhatIsRun(t *testing.T) {
	for _, name := range []string{"ACCESS.md", "ACCESS.ru.md"} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
			require.NoError(t, err)
			page := string(content)
			for _, example := range append(roster.Examples(), roster.Example{Block: "bash", File: "java.sh"}) {
				file, err := scripts.ReadFile("page/" + example.File)
				require.NoError(t, err)
				require.Contains(t, blocks(page, example.Block), string(file), "the page's block is page/%s", example.File)
			}
			for _, client := range roster.All() {
				require.Contains(t, page, "\n| "+client.Title+" | ", "the page has a row for each client of the matrix")
			}
		})
	}
}
