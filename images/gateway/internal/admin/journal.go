package admin

import (
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/journal"
)

// Journal notes what writes may have changed.
type Journal interface {
	Begin(id string)
	End()
	Read(id string, after int64) (journal.Page, error)
}

// beginJournal begins the journal of an id, which goes on if it is there.
func (h *handler) beginJournal(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID string `json:"id"`
	}
	if err := decode(r.Body, &asked); err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	if asked.ID == "" {
		answer(w, http.StatusBadRequest, "a journal needs an id")
		return
	}
	h.Journal.Begin(asked.ID)
	h.Log.Info("writes are journaled", zap.String("journal", asked.ID))
	answer(w, http.StatusOK, "ok")
}

func (h *handler) readJournal(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	after, err := strconv.ParseInt(query.Get("after"), 10, 64)
	if err != nil || after < 0 {
		answer(w, http.StatusBadRequest, "after must be a sequence")
		return
	}
	page, err := h.Journal.Read(query.Get("id"), after)
	if err != nil {
		answer(w, http.StatusNotFound, "there is no such journal")
		return
	}
	h.tell(w, page)
}

func (h *handler) endJournal(w http.ResponseWriter, _ *http.Request) {
	h.Journal.End()
	answer(w, http.StatusOK, "ok")
}
