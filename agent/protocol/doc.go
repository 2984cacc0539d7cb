// Package protocol holds the wire types between the control plane and an agent. Every request carries the shared secret as
// a bearer token, and command.Protocol in a header. A command or a question of another protocol is refused before anything else
// of it is read.
//
//	GET  /healthz                                       liveness, no authentication
//	GET  /health                                        Health
//	GET  /v1/capabilities                               command.Capabilities
//	POST /v1/commands                                   Command -> Reply
//	POST /v1/logins/inspect                             command.InspectLogin -> command.LoginState
//	POST /v1/logins/outcome                             command.ReadOutcome -> command.Outcome
//	PUT  /v1/accounts                                   command.SetAccounts -> 204
//	GET  /v1/applied/{after}                            command.Applied
//	GET  /v1/usage/{after}                              command.Used
//	GET  /v1/operations                                 command.Heard
//	PUT  /v1/operations                                 command.Vouch -> 204
//	GET  /v1/databases/{id}/size                        command.Size
//	GET  /v1/databases/{id}/backup-key                  command.BackupKey
//	GET  /v1/databases/{id}/backups/room                204, or a refusal
//	GET  /v1/databases/{id}/backups/{filename}          the file
//	GET  /v1/databases/{id}/backups/{filename}/from/{offset}  the file from a byte on
//	GET  /v1/databases/{id}/backups/{filename}/manifest the manifest, as it was written
//	DELETE /v1/databases/{id}/backups/{filename}        204, also when it is gone already
//	PUT  /v1/databases/{id}/uploads/{upload}            command.OpenUpload -> command.Uploaded
//	GET  /v1/databases/{id}/uploads/{upload}            command.Uploaded
//	PATCH /v1/databases/{id}/uploads/{upload}/{offset}  bytes, with their Content-Length -> command.Uploaded
//	DELETE /v1/databases/{id}/uploads/{upload}          204, also when it is gone already
//
// A refusal is an answer with a status of 400 or more and a command.Refusal as its body: the agent did not do it. Anything else
// that is no 2xx, and every broken connection, leaves the outcome unknown.
package protocol

// Header of a request is command.Protocol of its sender.
const Header = "Pgherd-Protocol"
