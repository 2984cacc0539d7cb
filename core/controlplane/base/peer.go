package base

import (
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
)

// peerToken is the length of the token by which the agents of two servers know each other: 256 bits.
const peerToken = 43

// SealPeerToken makes the token by which the agents of two servers know each other in an operation that is not stored yet.
func (p *Base) SealPeerToken(o *operation.Operation) (err error) {
	o.SealedInput, err = p.Secrets.Seal([]byte(p.Entropy.Base62(peerToken)), o.InputContext())
	return err
}

// PeerOf is a server as the agent of the other one reaches it in such an operation.
func (p *Base) PeerOf(s server.Server, in operation.Operation) (command.Peer, error) {
	token, err := p.Secrets.Open(in.SealedInput, in.InputContext())
	return command.Peer{URL: s.AgentURL, CA: s.CA, Token: string(token)}, err
}
