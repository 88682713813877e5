package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// ErrNoJournal means that the gateway keeps no journal of that id: it was restarted, or keeps another.
var ErrNoJournal = errors.New("the gateway keeps no such journal")

// maxJournalAnswer is for 5 000 entries with the longest names, in which JSON makes six bytes of one.
const maxJournalAnswer = 40 << 20

// JournalEntry is an object that a write may have changed.
type JournalEntry struct {
	Sequence int64  `json:"sequence"`
	Bucket   string `json:"bucket"`
	Key      string `json:"key"`
}

// JournalPage is what a gateway's journal has after a sequence.
type JournalPage struct {
	ID       string         `json:"id"`
	Last     int64          `json:"last"`     // the newest sequence of all
	Overflow bool           `json:"overflow"` // entries are missing, for good
	More     bool           `json:"more"`     // entries that are not on this page
	Entries  []JournalEntry `json:"entries"`
}

// BeginJournal makes the gateway note what is written from now on. A journal of another id ends.
func BeginJournal(ctx context.Context, door Door, id string) error {
	return door.ask(ctx, http.MethodPut, "journal", map[string]string{"id": id}, nil)
}

// ReadJournal reads what comes after the sequence; the gateway forgets what does not.
func ReadJournal(ctx context.Context, door Door, id string, after int64) (JournalPage, error) {
	query := url.Values{"id": {id}, "after": {strconv.FormatInt(after, 10)}}
	var page JournalPage
	err := door.pose(ctx, question{http.MethodGet, "journal?" + query.Encode(), nil, maxJournalAnswer}, &page)
	if errors.Is(err, errUnknown) {
		return JournalPage{}, fmt.Errorf("%s: %w", door.Name, ErrNoJournal)
	}
	return page, err
}

// EndJournal ends whatever journal the gateway keeps.
func EndJournal(ctx context.Context, door Door) error {
	return door.ask(ctx, http.MethodDelete, "journal", nil, nil)
}
