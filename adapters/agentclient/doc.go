// Package agentclient is ports.Fleet over HTTPS, as agent/protocol describes it: one pool of connections for each server,
// the shared secret as a bearer token, certificates checked against the server's CA or the system's roots. It uses no
// proxy, follows no redirect and never repeats a command by itself.
//
// It tells truthfully what is known of a call that went wrong. Where not one byte of the request was handed to a
// connection the error is ports.ErrAgentUnreachable, a readable refusal of the agent is a *ports.AgentRefusal, and all the
// rest, a broken connection or an answer that cannot be understood, is an error of unknown outcome.
package agentclient
