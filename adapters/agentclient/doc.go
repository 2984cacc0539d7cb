// Package agentclient is ports.Fleet over HTTPS, as agent/protocol describes it: one pool of connections for each server,
// the shared secret as a bearer token, certificates checked against the server's CA or the system's roots. It uses no
// proxy, follows no redirect and never repeats a command by itself.
//
// Its errors tell what is known about a failed call. If no byte of the request was handed to a connection, the error is
// ports.ErrAgentUnreachable. A readable refusal of the agent is a *command.Refusal. Everything else, such as a broken
// connection or an answer that cannot be understood, means that the outcome is unknown.
package agentclient
