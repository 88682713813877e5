package page

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/go-logr/logr"

	"github.com/deckhouse/system-s3/lib/sts"
)

// Viewers tells whose token it is and whether they may see the page.
type Viewers interface {
	View(ctx context.Context, token string) (who string, allowed bool, err error)
}

// challenge makes a browser ask for the token where no authenticating proxy brings it.
const challenge = `Basic realm="system-s3 status: any user name, a token of Kubernetes as the password", charset="UTF-8"`

// admitted lets those pass whose token RBAC allows to see the page. Nothing is remembered: what RBAC takes away is gone
// with the next request.
func admitted(viewers Viewers, log logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := tokenOf(r)
		if token == "" {
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, "Who asks? Send a token of Kubernetes as bearer token, or as password of any user.", http.StatusUnauthorized)
			return
		}
		who, allowed, err := viewers.View(r.Context(), token)
		switch {
		case errors.Is(err, sts.ErrTokenRefused):
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, "Kubernetes does not accept this token. Get a new one.", http.StatusUnauthorized)
		case err != nil:
			log.Error(err, "cannot ask who may see the status page")
			http.Error(w, "Kubernetes cannot be asked at the moment who you are. Try again.", http.StatusServiceUnavailable)
		case !allowed:
			log.V(1).Info("status page refused", "user", who)
			http.Error(w, who+" may not see this page. It takes the right to get modules/page (group deckhouse.io) of system-s3; "+
				"the capability to view the module has it.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// tokenOf is the bearer token, or the password of Basic authentication, which is all that a browser can ask a person for.
func tokenOf(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return strings.TrimSpace(password)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
