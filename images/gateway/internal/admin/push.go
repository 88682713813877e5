package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/revocation"
	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
)

// maxHold is how long writes may be held without being asked again.
const maxHold = time.Minute

// maxList bounds the list of revoked rights: an entry has about 200 bytes.
const maxList = 32 << 20

// revoked takes the whole list of revoked rights.
func (h *handler) revoked(w http.ResponseWriter, r *http.Request) {
	var list struct {
		Revoked []revocation.Entry `json:"revoked"`
	}
	err := decode(http.MaxBytesReader(w, r.Body, maxList), &list)
	if err == nil {
		err = h.Revoked.Replace(list.Revoked)
	}
	if err != nil {
		h.Log.Warn("list of revoked rights refused", zap.Error(err))
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// door opens the door of an epoch, or announces that it is about to open.
func (h *handler) door(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Epoch int  `json:"epoch"`
		Open  bool `json:"open"`
	}
	if err := decode(r.Body, &asked); err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	do := h.Door.Expect
	if asked.Open {
		do = h.Door.Open
	}
	if err := do(asked.Epoch); err != nil {
		h.Log.Warn("the door stays as it is", zap.Error(err))
		answer(w, http.StatusConflict, err.Error())
		return
	}
	h.Log.Info("door", zap.Int("epoch", asked.Epoch), zap.Bool("open", asked.Open))
	h.doorState(w, r)
}

func (h *handler) doorState(w http.ResponseWriter, _ *http.Request) {
	h.tell(w, map[string]bool{"open": h.Door.IsOpen()})
}

// holdState is what every question about the hold is answered with.
type holdState struct {
	Writing     int     `json:"writing"`     // writes on their way to Garage
	HeldSeconds float64 `json:"heldSeconds"` // how long new ones wait at most, 0 when they don't
}

// hold makes new writes wait. A controller repeats it until it is done or gives up.
func (h *handler) hold(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Seconds float64 `json:"seconds"`
	}
	if err := decode(r.Body, &asked); err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	lasting := time.Duration(asked.Seconds * float64(time.Second))
	if lasting <= 0 || lasting > maxHold {
		answer(w, http.StatusBadRequest, "seconds must be more than 0 and at most 60")
		return
	}
	h.Hold.Hold(lasting)
	h.Log.Info("writes are held", zap.Duration("lasting", lasting))
	h.holdState(w, r)
}

func (h *handler) release(w http.ResponseWriter, r *http.Request) {
	h.Hold.Release()
	h.holdState(w, r)
}

func (h *handler) holdState(w http.ResponseWriter, _ *http.Request) {
	writing, held := h.Hold.State()
	h.tell(w, holdState{Writing: writing, HeldSeconds: held.Seconds()})
}

// volumeState is what is told of the volume.
type volumeState struct {
	volume.Status

	// Content names what is on it; empty when it has no name yet.
	Content string `json:"content,omitempty"`
}

func (h *handler) volume(w http.ResponseWriter, _ *http.Request) {
	status, err := h.Space.Status()
	if err != nil {
		h.Log.Error("volume cannot be measured", zap.Error(err))
		answer(w, http.StatusInternalServerError, "the volume cannot be measured")
		return
	}
	h.tell(w, volumeState{Status: status, Content: h.Content()})
}

func (h *handler) tell(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		h.Log.Debug("answer not told", zap.Error(err))
	}
}

var errDocument = errors.New("the body must be one JSON document with known fields")

// decode is strict: a field that this gateway does not know could change the meaning of the others.
func decode(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return errDocument
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errDocument
	}
	return nil
}
