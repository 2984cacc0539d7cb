package admin

// CommandAt is Command, with a terminal that the tests choose.
var CommandAt = commandAt
