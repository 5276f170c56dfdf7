package humanqa

// Invariant is a sentence that must always be true of the service and its log.
type Invariant struct {
	Number int
	Text   string
	// Live says that humanqa fsck also checks it on live data.
	Live bool
	// HeldBy names the tests that fail when the invariant breaks.
	HeldBy []string
}

// Invariants are in the order of their numbers. The table in ARCHITECTURE.md is
// written from them: go test . -run Invariants -update.
var Invariants = []Invariant{
	{1, "Credits are never negative at any prefix of a ledger stream.", true, []string{
		"TestNoHistoryBreaksTheLedger", "TestTwoProcessesOnOneLedgerNeverOverdrawIt",
	}},
	{2, "granted = available + used (net) + expired, per account and in total.", true, []string{
		"TestNoHistoryBreaksTheLedger", "TestTheLedgerShowsWhereEveryCreditIs",
	}},
	{3, "A job has one debit. It is refunded at most once, and never for more.", true, []string{
		"TestADebit", "TestARepeatBehindACloseDoesNothing", "TestARefund", "TestSeveralDebitsAtOnce", "TestEachBrokenInvariantIsFound",
	}},
	{4, "Every debit has a job, or a refund within a minute. Every job has a debit.", true, []string{
		"TestADebitWhoseJobNeverCameIsRefundedOnce", "TestAFailureThatCrashesAnywhereIsRefundedOnce",
		"TestABatchThatFailsAnywhereCanBeRepeated", "TestTorture",
	}},
	{5, "The same Idempotency-Key and body have one effect and get the same bytes.", false, []string{
		"TestTheSameKeyAndBodyHaveOneEffectAndTheSameBytes", "TestACrashBetweenChargeAndAnswerNeverChargesTwice",
		"TestEveryRouteThatChargesOrCreatesKeepsTheRulesOfItsIdempotencyKey",
	}},
	{6, "No acknowledged job is lost. No job exists without a request.", true, []string{
		"TestTorture", "TestNoAcknowledgedAppendIsLostWhenPostgresDropsTheNode",
	}},
	{7, "A job has one claimer at a time. A stale token is refused.", true, []string{
		"TestWorkIsOnlyTakenUnderTheLiveClaim", "TestSixtyFourParallelClaimsOfOneJobGiveItToOneChecker",
		"TestTheRaceOfACompletionAgainstTheSLAHasOneWinner",
	}},
	{8, "Only legal transitions happen. An end state never changes.", true, []string{
		"TestNoHistoryTakesAJobOutOfLine", "TestNoHistoryTakesASessionOutOfLine", "TestNoHistoryTakesALoopOutOfLine",
		"TestASandboxPlaysEveryStoryThroughCrashes",
	}},
	{9,
		"A read model equals the fold of the log, row by row, except for streams that it names as set aside. A rebuild gives the same rows.", true, []string{
			"TestARebuildUnderLoadOnTheRealLog", "TestARebuildBesideTheServingRowsUnderLoad",
			"TestAnEventThatCannotBeAppliedIsSetAsideWithItsStream",
			"TestWhatWasSetAsideIsAppliedOnceThatCanBeDone", "TestHowTheLogIsCutDoesNotMatter", "TestWhatWasFoldedLiveIsWhatARebuildMakes",
			"TestTorture", "TestARebuildOfAllThatIsKilledGoesOn",
		}},
	{10, "Applying a suffix of the log twice equals applying it once.", false, []string{
		"TestApplyingABatchTwiceIsImpossible", "TestReadingEventsTwiceMakesNoSecondDelivery",
	}},
	{11, "Two runners never both advance one checkpoint.", false, []string{
		"TestTwoRunnersNeverAdvanceOneCheckpoint", "TestATakeOverDuringABatchFencesTheOldOwner",
		"TestALostLeaseIsLostByOneOfThoseThatShareATransaction",
	}},
	{12, "A read after a write, or after its webhook, sees the write.", false, []string{
		"TestWhoWaitsSeesWhatTheyWaitedFor", "TestTheService", "TestFaultsBetweenTheParts", "TestWhatIsAnnouncedCanBeRead",
		"TestNotYetIsSaidOnlyAtTheLogsNewestPosition", "TestAReceiverReadsWhatEachWebhookTells",
	}},
	{13, "Every event ever written decodes with this binary.", true, []string{
		"TestEveryGoldenFileDecodes", "TestEveryTypeHasAGoldenFileOfTodaysVersion", "TestTheGoldenLogLeadsToTheSameRows",
	}},
	{14, "Each subscribed event reaches its endpoint at least once, or its failure is recorded. Duplicates carry one id.", false, []string{
		"TestACrashedDispatchersDeliveryIsSentAgainUnderTheSameID", "TestAPausedDispatcherDoesNotSettleOverAnothersWork",
		"TestOfThreeDispatchersOneIsKilledAndOneFreezes", "TestADisabledEndpointHoldsAndAReplaySends",
		"TestAReceiverThatWasDownGetsEveryEventOnceWhenItIsRepaired",
	}},
	{15, "A webhook never goes to another project's URL or under another project's secret. Nothing is sent after a disable.", false,
		[]string{
			"TestADeliveryGoesOnlyToItsProjectsURLUnderItsSecret", "TestNothingIsSentAfterAnEndpointIsCleared",
			"TestARotationUnderLoadLeavesNothingThatDoesNotVerify",
		}},
	{16, "No answer to one account holds an id of another account.", false, []string{
		"TestEveryPageKeepsPeopleApart", "TestEveryRouteKeepsAccountsApart", "TestHostileRequests", "TestEvidenceOfAnotherJobIsNoEvidence",
	}},
	{17, "A key gets at most 60 requests in any 60 s, over all nodes.", false, []string{
		"TestNeverMoreThanSixtyInAnySixtySecondsOverTwoNodes",
	}},
	{18, "SIGTERM drains: accepted requests finish, and no goroutine is left.", false, []string{
		"TestAStopLetsAcceptedRequestsFinish", "TestAStopLeavesNothingBehind",
	}},
	{19, "An automatic action happens once.", false, []string{
		"TestTwoNodesFireEveryTimerOnceAndLeaveItSettled", "TestASettledTimerStaysSettledUntilALaterEventSetsItAgain",
	}},
	{20, "Every piece of evidence that the log names and keeps has its file, in a backup too. So has every acknowledged part of a recording.", true,
		[]string{
			"TestAPartThatBrokeOffIsSentAgain", "TestAPictureIsNotTakenAwayWhileItIsGiven", "TestARecordingOutlivesAKill",
			"TestABackupUnderLoadRestoresWhatWasAcknowledged", "TestEvidenceWhoseFileIsLostIsFoundAndCostsNoBackup",
			"TestASweepThatDiesAnywhereIsFinishedByTheNext",
		}},
	{21, "A slow or hostile endpoint never delays another account.", false, []string{
		"TestHostileAnswersAreNotFeltByOthers", "TestAnAccountWithManyHangingProjectsLeavesPlacesToOthers",
		"TestHostileEndpointsStopNobodyElsesWebhooks", "TestReviewsOfAPageThatHangsAreNotFeltByOtherAccounts",
		"TestAPlaceComesBackWhenItsLeaseEndsWhateverTheCodeInItDoes",
	}},
	{22, "The log is the one that was signed: no event was changed, dropped, inserted or moved since.", true, []string{
		"TestWhatWasDoneToTheLogIsFoundAndNamed", "TestARewriteOfEventsAndTreeIsFoundByAnOlderCheckpoint",
		"TestAnEventThatIsPutInAtTheEndIsFoundBeforeItIsSigned", "TestTheAuditOfALogThatWasChanged",
	}},
}
