// Package core is the map of pgherd's rules. Its areas are pure: they import the standard library, core/fault, core/id and
// areas above them in this list, and they never read a clock, random numbers, the network or a database.
//
//	fault         the one error type and the one table of codes
//	id            typed identifiers
//	machine       the shape of a state machine: a table with a cell for each state and event
//	network       networks as they are written, and who is in them
//	account       plans, quotas, keys and scopes, who may do what
//	member        the people of a database: members and invitations
//	ratelimit     route classes, limits, and the pure decision of a shared bucket
//	idempotency   what a key may look like, and when a request is the same request
//	keyring       the keys that encrypt stored secrets, by their fingerprints, and which hosts have them
//	credential    SCRAM verifiers, generated passwords
//	server        a registered database server
//	querytimeout  profiles of query timeouts, and when a change of them may begin
//	database      names, the status machine, environment, lifecycle, allowlist, settings
//	preview       leases of preview databases, their refs and names
//	operation     the operation machine, leases and fencing epochs
//	stage         what the machines of operations with stages have in common
//	role          additional logins: their machine, changes of passwords, dependencies
//	backup        file names, manifest, the verification rule, retention
//	certificate   restore certificates, and the keys that sign them
//	restore       the machine of restores, which backups can be restored, and beside what
//	deletion      what is left of deleted databases, until when they can be recovered, and how they are deleted, recovered, purged
//	extension     the catalog of extensions, and when one may be installed or upgraded
//	download      the lowest rate of a download, and who may download next
//	event         the catalogue of operation events and their payload
//	lease         a dispatcher's right to make the next attempt
//	webhook       endpoints, URL and address rules, signatures, the delivery schedule
//	citoken       which tokens of CI systems may be exchanged for preview CI keys
//	mail          invitation mails: their machine, lease, schedule, bounds and text
//	audit         the activity log
//	retention     how long what is over stays, and what stays for longer
//	health        healthy or degraded
//	command       what an agent can be told and asked: one type each, with its result and its JSON form
//	doctor        what a server has compared with what the metadata say of it
//	controlplane  the use cases: what an embedder imports
package core
