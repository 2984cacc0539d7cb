// Package core is the map of pgherd's rules. Its areas are pure: they import the standard library, core/fault, core/id and
// areas above them in this list, and they never read a clock, random numbers, the network or a database.
//
//	fault         the one error type and the one table of codes
//	id            typed identifiers
//	ascii         how texts that name something are compared
//	guests        which open connection goes where there are too many
//	repeat        which of many equal errors the log repeats
//	trace         in which trace a piece of work is seen, and what that may show of it
//	pgversion     which major versions of PostgreSQL there are
//	machine       the shape of a state machine: a table with a cell for each state and event
//	brake         why work that goes by time has to wait
//	slot          who of the accounts gets the next slot of what is scarce
//	network       networks as they are written, and who is in them
//	account       plans, quotas, keys and scopes, who may do what
//	token         the secrets of links and cookies, and what is stored of them
//	person        people who log in: sessions, second factors, recovery codes, sign-ons by an issuer
//	member        the people of a database: members and invitations
//	ratelimit     route classes, limits, and the pure decision of a shared bucket
//	idempotency   what a key may look like, and when a request is the same request
//	keyring       the keys that encrypt stored secrets, by their fingerprints, and which hosts have them
//	credential    SCRAM verifiers, generated passwords
//	server        a registered database server
//	snapshot      copies of the metadata that servers keep: when they are due, where, and which ones stay
//	rollout       features, limited-rollout routes, and the gates that they open
//	querytimeout  profiles of query timeouts, and when a change of them may begin
//	slowquery     which statements are shown of a database, and what of their texts
//	database      names, the status machine, environment, lifecycle, allowlist, settings
//	recovery      from which moments a database can be had back
//	preview       leases of preview databases, their refs and names
//	operation     the operation machine, leases and fencing epochs
//	stage         what the machines of operations with stages have in common
//	role          additional logins: their machine, changes of passwords, dependencies
//	backup        file names, manifest, the verification rule, retention
//	drill         proofs that an archive gives back what was: which second is tried, and what it is compared with
//	certificate   restore and recovery certificates, and the keys that sign them
//	restore       the machine of restores, which backups can be restored, and beside what
//	clone         the machine of clones, and what a clone takes from its source
//	rebuild       the machine by which a database of a server that is gone is made anew on another one
//	move          the machine by which a database moves to another server while it serves, and what is in its way
//	rehearsal     the machine by which a move is tried on a copy, what breaks there, and for how long that counts
//	deletion      what is left of deleted databases, until when they can be recovered, and how they are deleted, recovered, purged
//	extension     the catalog of extensions, and when one may be installed or upgraded
//	download      the lowest rate of a download, and who may download next
//	upload        dumps that customers send in pieces
//	event         the catalogue of operation events and their payload
//	lease         a dispatcher's right to make the next attempt
//	webhook       endpoints, URL and address rules, signatures, the delivery schedule
//	citoken       which tokens of CI systems may be exchanged for preview CI keys
//	mail          invitation mails: their machine, lease, schedule, bounds and text
//	audit         the activity log
//	usage         what databases use of their servers, in samples of an hour, and what a month comes to
//	retention     how long what is over stays, and what stays for longer
//	health        healthy or degraded
//	command       what an agent can be told and asked: one type each, with its result and its JSON form
//	doctor        what a server has compared with what the metadata say of it
//	adoption      how what a server has and the metadata do not know gets a record
//	controlplane  the use cases: what an embedder imports
//
// # Control plane
//
// Below controlplane there is one package for each capability, and what they share:
//
//	base          ports, configuration, and what every capability needs
//	work          the engine: kinds of operations, their steps and leases
//	rounds        periodic tasks
//	access        who calls, and what of everything that caller reaches
//	provision     a new database before it is stored, and how its password is shown
//	settings      sends the settings of databases to their servers
//	monitor       asks every agent for a sign of life
//	live          tells open pages of changes
//	operator      the use cases of the people who run the service
//
// The others are named after what they serve: adoptions, backups, certificates, checkups, citokens, clones, databases,
// deletion, drills, extensions, keyrings, keys, looks, mails, members, moments, moves, operations, people, previews, pruning,
// querytimeouts, rebuilds, rehearsals, restores, roles, slowqueries, snapshots, storage, uploads, usage, webhooks.
//
// # Glossary
//
// Each word of the code has one meaning.
//
//	adopt         to take over what stands already: a database or a file gets a record, a backup another server
//	advance       a caller's request to do the next step of a managed restore
//	attempt       one try at a delivery, a mail or a step
//	backoff       the pause before the next attempt, which grows
//	brake         what holds work that goes by time, or destroys, while that cannot be trusted
//	break         something of a database that a server of another PostgreSQL does not take, as a rehearsal finds
//	caller        who makes a request: a key or a person with a session, and the account it acts for
//	change        a rotation, revocation, expiry or removal of a login, as it is carried out
//	claim         to take the lease of what is due
//	command       what an agent is told to do: a desired state, with a generation
//	depart        of a server: to drop a database that is another one's now
//	digest        a checksum of a table's rows, or of a file
//	dispatcher    sends what is delivered at least once: webhooks and mails
//	drain         to move all databases of a server to others, some at a time
//	enrolment     admits one database to a limited-rollout route
//	epoch         counts the claims of a lease; a write with an older one is refused
//	fate          what becomes of a database once it is adopted
//	feature       what is on or off for the whole installation
//	fence         the operation and epoch under which a command is sent; the agent refuses an older epoch
//	finding       a difference that the doctor reports, or a result of a server check
//	follow        to apply at one server what changes in a database of another one
//	forward       a server that sends on who still comes for a database that it has left
//	gate          what must be open to let something in: a feature or an enrolment for a route, the pooler's entry for a login
//	generation    counts the changes of what a server is told, such as settings or a password; a lower one is refused
//	grace         how long a host that ends waits for its requests
//	holder        the role without login that owns a customer's database
//	identity      who a person is to an issuer: a subject
//	intent        what is committed before an outside effect, so that another process can continue
//	job           long work of an agent, which the control plane asks about
//	journal       the operator's log
//	kind          a kind of operation, with its input, steps and rights
//	lane          work that is done in its order, beside other lanes
//	lease         a right that ends by itself unless it is renewed: to an operation, to a part of a bucket, to a preview
//	leave         of a server: to remove what it has kept of a database that has departed
//	ledger        the agent's table of the commands that it has admitted and carried out
//	limiter       bounds the requests that run at the same time
//	line          a way on which an agent carries connections to another server: to a peer, or of those whom a forward sends on
//	lingering     of an entry of the pooler: its database is gone, and it stays until nobody can be in the middle of a log-in there
//	manifest      what a backup holds, by which a restore is compared
//	move          brings a database to another server, with all that belongs to it; a closed one does not follow
//	observation   what a look at a changed login shows: which password is in force
//	operation     asynchronous work on a database; at most one is open, and beside it one that changes a login
//	order         what an operator decides, and why: about an operation that does not end by itself, or in an owner's place
//	outbox        events that were committed with their cause and are still to be delivered
//	overlay       the group roles that give a database with a single login additional roles
//	owner         the person whose account a database belongs to, and the login that this person gets
//	part          to keep customers out of a database that moves, at the end, so that nothing is missing
//	peer          another server's agent, which is admitted for one operation
//	pivot         the commit from which on a database that moves is the other server's
//	pooler        PgBouncer
//	proof         a log-in by which the agent shows that a password works or is refused
//	pushed        sent to a server outside of operations, and sent again until the server has it
//	question      what an agent is asked; it changes nothing
//	reached       found within the caller's scope, through the gates
//	refusal       an agent's answer that it does not carry out a command, with the reason
//	role          an additional login of a database, made by a customer
//	room          what a server, or a disk, has free
//	round         one run of a periodic task
//	route         a path of the API; one of limited rollout is opened for one database by an enrolment
//	sample        what a database used in one hour
//	sealed        encrypted, and bound to what it belongs to
//	serve         of a server: to let customers into a database that has come
//	sidecar       what a portable dump leaves out: owners, grants, default privileges
//	slot          one of a bounded number of places
//	stage         how far an operation with stages is; each is committed before it begins
//	standing      a caller's relation to one database: owner, admin, developer or viewer
//	step          one bounded piece of an operation, under a lease
//	stretch       a span of time in which an agent looked at its databases again and again, and what it saw
//	survey        what is seen of a server from outside: its agent, its version, its public address
//	suspended     of an account: nobody acts for it, and its databases are closed, until it is resumed
//	switch        to put a copy in the place of the live database, or of one that waits for its data
//	take          of a server: to have what is missing of a database that was parted with
//	tombstone     what is kept of a deleted database until it is purged
//	turn          one step of an operation with stages: what it has read, and what it may commit
//	use           an operation of one database uses another database or its backup, which stays meanwhile
//	verifier      the SCRAM-SHA-256 form of a password, which is all that PostgreSQL gets
//	vouched       of an operation that an agent has heard of: the metadata have it
//	welcome       what a server admits, beside a database's allowlist, for those whom forwards send on
//	window        a span of time: of maintenance, of the recovery of a deleted database, of a limit
package core
