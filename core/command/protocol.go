package command

// Protocol is the number of this package's protocol: what an agent can be told and asked, and how it answers. Any change of
// that raises it, once a release. It travels with every request. An agent carries out and answers only what is of its own
// protocol, except AskCapabilities: to everything else it says ReasonOtherProtocol, and work for its server waits.
const Protocol = 1

// CheckProtocol refuses a request of another protocol.
func CheckProtocol(requested int) error {
	switch {
	case requested < Protocol:
		return Refuse(ReasonOtherProtocol, "the agent is too new: it has protocol %d, and the control plane %d", Protocol, requested)
	case requested > Protocol:
		return Refuse(ReasonOtherProtocol, "the agent is too old: it has protocol %d, and the control plane %d", Protocol, requested)
	}
	return nil
}
