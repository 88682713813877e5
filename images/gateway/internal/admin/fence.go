package admin

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/fence"
)

// Fence ends writes for good.
type Fence interface {
	State() fence.State
	Set(to string) error
}

func (h *handler) fenceState(w http.ResponseWriter, _ *http.Request) { h.tell(w, h.Fence.State()) }

// fence answers when the fence is on the disk.
func (h *handler) fence(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		To string `json:"to"`
	}
	if err := decode(r.Body, &asked); err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := h.Fence.Set(asked.To); err != nil {
		h.Log.Error("the fence stays as it is", zap.Error(err))
		answer(w, http.StatusConflict, err.Error())
		return
	}
	h.Log.Info("writes are fenced", zap.String("to", asked.To))
	h.fenceState(w, r)
}
