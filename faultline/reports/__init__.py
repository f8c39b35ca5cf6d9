"""Reports: the results of a run or a campaign, for a reader whose store has just failed.

`run_page` and `campaign_page` write one offline HTML file each, `terminal` the same facts as plain lines. All of them
begin with the verdict sentence, show the smallest convincing evidence, and name the command that repeats it.
"""
