"""The Telegram door: updates come by webhook or long polling, answers are edited into place."""
