package sts

import (
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// tokenLeeway is what the apiserver allows clocks to differ by.
const tokenLeeway = time.Minute

// peek reads a token without verifying it, to refuse early what the apiserver would refuse anyway, and with a better
// word. It never decides in favour of a token. The issuer is what the token says; it may be told to the client only
// after the review.
func peek(token string, now time.Time) (issuer string, err error) {
	claims := jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		return "", errInvalidToken // the parser's own words may quote the token
	}
	if !slices.Contains(claims.Audience, names.Audience) {
		return "", access.ErrRejected.With("The token is not meant for the audience " + names.Audience + ". Mount a projected ServiceAccount token with audience: " + names.Audience + ".")
	}
	if claims.ExpiresAt != nil && claims.ExpiresAt.Add(tokenLeeway).Before(now) {
		return "", errExpiredToken
	}
	return claims.Issuer, nil
}
