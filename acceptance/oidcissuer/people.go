package oidcissuer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// people is what an issuer is to the people who log in there.
type people struct {
	client, secret string
	codes          map[string]granted
	exchanges      http.HandlerFunc // in place of the usual one
	sign           func(claims map[string]any) string
	info           map[string]any
	exchanged      atomic.Int64
	made           int
}

// granted is what a code stands for.
type granted struct {
	challenge, redirect string
	claims              map[string]any
}

// Register makes a client the one that may exchange codes, with a secret or, where that is empty, without.
func (i *Issuer) Register(client, secret string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.people.client, i.people.secret = client, secret
}

// Exchanged counts the requests to exchange a code.
func (i *Issuer) Exchanged() int64 { return i.people.exchanged.Load() }

// Exchanges has codes exchanged in another way; nil for the usual one.
func (i *Issuer) Exchanges(by http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.people.exchanges = by
}

// Signs has ID tokens signed in another way; nil for the usual one.
func (i *Issuer) Signs(by func(claims map[string]any) string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.people.sign = by
}

// Tells has /userinfo answer so; nil for a refusal.
func (i *Issuer) Tells(info map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.people.info = info
}

// Visits is a browser that opens a URL of the authorization endpoint, in which somebody logs in. It returns what the browser
// brings back. The claims are added to the usual ones, and a nil takes one away.
func (i *Issuer) Visits(address string, now time.Time, claims map[string]any) (state, code string) {
	u, err := url.Parse(address)
	check(err)
	q := u.Query()
	says := map[string]any{
		"iss": i.URL, "aud": q.Get("client_id"), "nonce": q.Get("nonce"), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	if q.Get("max_age") != "" {
		says["auth_time"] = now.Unix()
	}
	maps.Copy(says, claims)
	maps.DeleteFunc(says, func(_ string, v any) bool { return v == nil })
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.people.codes == nil {
		i.people.codes = map[string]granted{}
	}
	i.people.made++
	code = "code-" + strconv.Itoa(i.people.made)
	if q.Get("code_challenge_method") == "S256" && q.Get("response_type") == "code" {
		i.people.codes[code] = granted{q.Get("code_challenge"), q.Get("redirect_uri"), says}
	}
	return q.Get("state"), code
}

const accessToken = "the access token"

// exchange is the token endpoint.
func (i *Issuer) exchange(w http.ResponseWriter, r *http.Request) {
	i.people.exchanged.Add(1)
	i.mu.Lock()
	answer, by, sign := i.answer, i.people.exchanges, i.people.sign
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
		return
	case by != nil:
		by(w, r)
		return
	case sign == nil:
		sign = i.Token
	}
	claims, refusal := i.take(r)
	if refusal != "" {
		status := map[bool]int{true: http.StatusUnauthorized, false: http.StatusBadRequest}[refusal == "invalid_client"]
		reply(w, status, map[string]any{"error": refusal, "error_description": "a secret: " + r.PostForm.Get("client_secret")})
		return
	}
	reply(w, http.StatusOK, map[string]any{"access_token": accessToken, "token_type": "Bearer", "id_token": sign(claims)})
}

// take returns what the code of a request stands for, which works once, or why it is refused.
func (i *Issuer) take(r *http.Request) (claims map[string]any, refusal string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.ParseForm() != nil || r.Method != http.MethodPost || r.PostForm.Get("grant_type") != "authorization_code" {
		return nil, "invalid_request"
	}
	client, secret, basic := r.BasicAuth() // each is escaped (RFC 6749, section 2.3.1)
	wanted, key := url.QueryEscape(i.people.client), url.QueryEscape(i.people.secret)
	if !basic {
		client, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
		wanted, key = i.people.client, i.people.secret
	}
	if client != wanted || secret != key {
		return nil, "invalid_client"
	}
	code := r.PostForm.Get("code")
	g, known := i.people.codes[code]
	delete(i.people.codes, code)
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if !known || g.redirect != r.PostForm.Get("redirect_uri") || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		return nil, "invalid_grant"
	}
	return g.claims, ""
}

func (i *Issuer) userInfo(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	info := i.people.info
	i.mu.Unlock()
	if info == nil || r.Header.Get("Authorization") != "Bearer "+accessToken {
		reply(w, http.StatusUnauthorized, map[string]any{})
		return
	}
	reply(w, http.StatusOK, info)
}

func reply(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // whoever asked may have left
}
