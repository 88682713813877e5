package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// deckhouseUser is the account that Deckhouse works under.
	deckhouseUser = "system:serviceaccount:d8-system:deckhouse"
	// reviewLimit bounds a review in bytes; the apiserver's own limit on an object is 1.5 MiB.
	reviewLimit = 8 << 20

	moduleConfigPath = "/validate/moduleconfigs"
	modulePath       = "/validate/modules"
)

// Gate answers the admission reviews that Deckhouse answers.
type Gate struct {
	Definition Definition
	Settings   Settings
	Facts      ClusterFacts
	Modules    []string // the other modules that run
	// Experimental tells whether the platform allows experimental modules just now.
	Experimental func(context.Context) bool
}

// Handler serves both webhooks.
func (g Gate) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+moduleConfigPath, review(g.reviewModuleConfig))
	mux.Handle("POST "+modulePath, review(reviewModule))

	return mux
}

// review wraps a verdict on one request into the admission protocol.
func review(verdict func(context.Context, *admissionv1.AdmissionRequest) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, reviewLimit))
		if err != nil {
			http.Error(w, "read review", http.StatusBadRequest)
			return
		}

		var in admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &in); err != nil || in.Request == nil {
			http.Error(w, "parse review", http.StatusBadRequest)
			return
		}

		out := admissionv1.AdmissionReview{
			TypeMeta: in.TypeMeta,
			Response: &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true},
		}

		if err := verdict(r.Context(), in.Request); err != nil {
			out.Response.Allowed = false
			out.Response.Result = &metav1.Status{
				Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden,
				Code: http.StatusForbidden, Message: err.Error(),
			}
		}

		w.Header().Set("Content-Type", "application/json")
		// An answer that cannot be written is an answer not given: the apiserver refuses the write.
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (g Gate) reviewModuleConfig(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	change, err := changeOf(request)
	if err != nil {
		return err
	}

	if change.New != nil && change.New.Spec.Source == "Embedded" {
		return &RefusalError{Reason: `spec.source: "Embedded" is not a source`}
	}

	if request.Name != g.Definition.Name {
		return nil
	}

	if err := g.Settings.Check(change); err != nil {
		return err
	}

	if err := CheckEnabling(g.Definition, change, Suitability{
		Facts: g.Facts, Modules: g.Modules, Experimental: g.Experimental(ctx),
	}); err != nil {
		return err
	}

	return ConfirmDisabling(g.Definition, change)
}

// changeOf reads both sides of the write.
func changeOf(request *admissionv1.AdmissionRequest) (Change, error) {
	var change Change

	for _, side := range []struct {
		raw    []byte
		config **ModuleConfig
	}{{request.OldObject.Raw, &change.Old}, {request.Object.Raw, &change.New}} {
		if len(side.raw) == 0 {
			continue
		}

		*side.config = &ModuleConfig{}
		if err := json.Unmarshal(side.raw, *side.config); err != nil {
			return Change{}, fmt.Errorf("read ModuleConfig %s: %w", request.Name, err)
		}
	}

	return change, nil
}

// errNotDeckhouse is the answer to anyone else who creates, changes or deletes a
// Module. Writes of its status are not asked about.
var errNotDeckhouse = errors.New("modules are managed by Deckhouse; use a ModuleConfig")

func reviewModule(_ context.Context, request *admissionv1.AdmissionRequest) error {
	if request.UserInfo.Username == deckhouseUser {
		return nil
	}

	return errNotDeckhouse
}
