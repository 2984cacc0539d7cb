package command

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"github.com/pgherd/pgherd/core/id"
)

// Two agents reach each other for one operation at a time: the control plane has the one admit the other under a token, and tells
// that one where it is. What the token opens is of one database, and ends with the operation.

// AdmitPeer has an agent admit another one, which shows the token, until the operation is closed or Depart is said. It opens the
// file that passes of this operation, the database's backups and, where a Backup of the same operation is Followed, the stream of
// its changes: nothing else of the server. Another token replaces the one before.
type AdmitPeer struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
	// TokenSHA256 is that of the token, in lower-case hex: the agent that admits never has the token itself.
	TokenSHA256 string `json:"tokenSha256"`
	Generation  int64  `json:"-"` // counts the tokens of the operation
}

// About implements Command.
func (c AdmitPeer) About() About { return ofDatabase("peer.admit", c.DatabaseID, c.Generation) }

func (c *AdmitPeer) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command.
func (c AdmitPeer) Check() error {
	if !sumPattern.MatchString(c.TokenSHA256) {
		return Refuse(ReasonInvalid, "tokenSha256 must be 64 digits of lower-case hex")
	}
	return checkDatabase(c.DatabaseID)
}

// Peer is how an agent reaches another one that has admitted it for the same operation. In a command it travels whole among the
// secrets: where a server is may change while an operation is open, and the same command stays the same.
type Peer struct {
	URL string `json:"url"` // of the other agent
	// CA are the certificates in PEM that sign the other agent's; empty: those that the machine trusts.
	CA    string `json:"ca,omitempty"`
	Token string `json:"token"`
}

// The names of what is said of a peer among secrets. No login has them.
const (
	secretPeerURL = "peer url"
	secretPeerCA  = "peer ca"
	secretPeer    = "peer token"
)

func (p Peer) secrets() map[string]string {
	all := map[string]string{secretPeerURL: p.URL, secretPeer: p.Token}
	if p.CA != "" {
		all[secretPeerCA] = p.CA
	}
	return all
}

// ReachPeer asks an agent whether it reaches a peer that has admitted it for the operation. It takes 15 s at most.
type ReachPeer struct {
	Returns[PeerReached] `json:"-"`
	Operation            id.OperationID `json:"operationId"`
	Peer                 Peer           `json:"peer"`
}

// PeerReached says whether a peer was reached.
type PeerReached struct {
	Why string `json:"why,omitempty"` // not, in one line for the operator; empty: it was
}

// Route implements Question.
func (ReachPeer) Route() Route { return Route{Method: "POST", Path: "/v1/reach"} }

// Check implements Question.
func (q ReachPeer) Check() error { return q.Peer.checkFor(q.Operation) }

func receivedPeer(e Envelope) Peer {
	return Peer{URL: e.Secrets[secretPeerURL], CA: e.Secrets[secretPeerCA], Token: e.Secrets[secretPeer]}
}

// HashToken is what AdmitPeer has of a token.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

const (
	leastToken     = 32       // characters
	maxAuthorities = 64 << 10 // bytes, as of a server's record
)

func (p Peer) check() error {
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" {
		return Refuse(ReasonInvalid, "peer.url must be an https URL")
	}
	if len(p.CA) > maxAuthorities {
		return Refuse(ReasonInvalid, "peer.ca has more than %d bytes", maxAuthorities)
	}
	if len(p.Token) < leastToken {
		return Refuse(ReasonInvalid, "the token of the peer is missing")
	}
	return nil
}

func (p Peer) checkFor(op id.OperationID) error {
	if _, err := id.Parse[id.OperationID](string(op)); err != nil {
		return Refuse(ReasonInvalid, "operationId must be a UUID")
	}
	return p.check()
}
